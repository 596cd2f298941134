// Pull: distinct keys by server, answers scattered to each key's first position, then copied to its others.
// Push: gradients of equal keys added up straight into the message; every message is complete and checked
// before the first one is sent, so that a gradient that is not a number changes nothing anywhere.
#include "ps/channel_client.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>

#include "ps/key_groups.h"
#include "ps/key_partition.h"
#include "ps/pending_calls.h"
#include "ps/table_set.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

using wire::Header;
using wire::Method;

// The sections of one server's part of a request.
struct Part {
  wire::Sections sections;
  std::vector<Block> blocks;  // by dense section
};

void copy_to_duplicates(const KeyGroups& groups, std::span<float> rows, std::size_t width) {
  if (groups.keys.size() == groups.group.size()) return;
  for (std::size_t i = 0; i < groups.group.size(); ++i) {
    const std::size_t first = groups.first[groups.group[i]];
    if (first != i) std::copy_n(rows.begin() + first * width, width, rows.begin() + i * width);
  }
}

class ChannelClient : public Client {
 public:
  ChannelClient(const ClientOptions& options, std::uint64_t incarnation,
                std::vector<std::unique_ptr<Channel>> channels, bool is_late);

  std::unique_ptr<Pending> pull_async(const Pull& request) override;
  std::unique_ptr<Pending> push_async(const Push& request) override;
  void set_dense(std::uint32_t table, std::span<const float> values) override;
  void begin_pass(std::uint32_t threads) override;
  void leave_pass(std::uint32_t thread) override;
  void barrier() override;
  void all_reduce_sum(std::span<double> values) override;
  void save(const std::string& directory) override;
  void load(const std::string& directory) override;
  std::uint64_t rows(std::uint32_t table) override;
  void goodbye() override;
  bool is_late() const noexcept override { return is_late_; }
  void set_epoch(std::uint64_t epoch) noexcept override { epoch_ = epoch; }

 private:
  std::uint32_t servers() const noexcept { return static_cast<std::uint32_t>(channels_.size()); }
  Header header(Method method, std::uint32_t thread = 0) const {
    return {method, options_.trainer, thread, incarnation_, epoch_};
  }
  const TableConfig& table(std::uint32_t id, TableConfig::Kind kind) const;
  std::size_t width_of_rows(std::uint32_t id, std::size_t keys, std::size_t floats) const;
  void add_dense(std::uint32_t id, std::size_t floats, std::vector<Part>& parts) const;
  std::vector<KeyGroups> add_sparse(const auto& sections, const auto& floats_of,
                                    std::vector<Part>& parts) const;
  std::vector<wire::PushDraft> draft_pushes(const Push& request) const;
  void check_finite(const std::vector<wire::PushDraft>& drafts) const;
  /// One request made by make(server) to every server; join as in PendingCalls.
  void ask_all(Header header, const std::function<Message(std::uint32_t)>& make,
               PendingCalls::Join join = {});
  void ask_all(Header header) {
    ask_all(header, [&](std::uint32_t) { return wire::draft(header, 0).message; });
  }
  /// A number that no save in the directory has, on any server's host.
  std::uint64_t next_save(const std::string& directory);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> save_parts(const std::string& directory,
                                                                  std::uint64_t save);
  Message directory_request(const Header& header, const std::string& directory, std::size_t more = 0,
                            const std::function<void(Writer&)>& write_more = {}) const;

  ClientOptions options_;
  std::uint64_t incarnation_;
  std::map<std::uint32_t, TableConfig> tables_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::atomic<bool> said_goodbye_{false};
  bool is_late_;
  std::atomic<std::uint64_t> epoch_;
};

ChannelClient::ChannelClient(const ClientOptions& options, std::uint64_t incarnation,
                             std::vector<std::unique_ptr<Channel>> channels, bool is_late)
    : options_(options),
      incarnation_(incarnation),
      channels_(std::move(channels)),
      is_late_(is_late),
      epoch_(options.epoch) {
  for (const TableConfig& config : options_.tables) tables_.emplace(config.id, config);
}

const TableConfig& ChannelClient::table(std::uint32_t id, TableConfig::Kind kind) const {
  const auto found = tables_.find(id);
  if (found == tables_.end()) throw Error(ErrorKind::config, "there is no table " + std::to_string(id));
  if (found->second.kind != kind) {
    throw Error(ErrorKind::config, "table '" + found->second.name + "' is " +
                                       std::string(to_string(found->second.kind)) + ", used as " +
                                       std::string(to_string(kind)));
  }
  return found->second;
}

std::size_t ChannelClient::width_of_rows(std::uint32_t id, std::size_t keys, std::size_t floats) const {
  const TableConfig& config = table(id, TableConfig::Kind::sparse);
  if (floats != keys * config.width) {
    throw Error(ErrorKind::config, "table '" + config.name + "': " + std::to_string(keys) +
                                       " keys of width " + std::to_string(config.width) + " need " +
                                       std::to_string(keys * config.width) + " floats, there are " +
                                       std::to_string(floats));
  }
  return config.width;
}

void ChannelClient::add_dense(std::uint32_t id, std::size_t floats, std::vector<Part>& parts) const {
  const TableConfig& config = table(id, TableConfig::Kind::dense);
  if (floats != config.width) {
    throw Error(ErrorKind::config, "table '" + config.name + "' has " + std::to_string(config.width) +
                                       " values, the request has " + std::to_string(floats));
  }
  for (std::uint32_t s = 0; s < servers(); ++s) {
    const Block block = dense_block(config.width, servers(), s);
    // Every server gets every section, so that part i of a request is section i on all of them.
    parts[s].sections.dense.push_back({id, 0, block.size()});
    parts[s].blocks.push_back(block);
  }
}

std::vector<KeyGroups> ChannelClient::add_sparse(const auto& sections, const auto& floats_of,
                                                 std::vector<Part>& parts) const {
  std::vector<KeyGroups> groups;
  groups.reserve(sections.size());
  for (const auto& section : sections) {
    const std::size_t width = width_of_rows(section.table, section.keys.size(), floats_of(section).size());
    groups.push_back(group_keys(section.keys, servers()));
    for (std::uint32_t s = 0; s < servers(); ++s) {
      parts[s].sections.sparse.push_back(
          {section.table, static_cast<std::uint32_t>(width), groups.back().keys_of(s).size()});
    }
  }
  return groups;
}

bool asks_for_nothing(const wire::Sections& sections) {
  return std::all_of(sections.sparse.begin(), sections.sparse.end(),
                     [](auto& rows) { return rows.keys == 0; }) &&
         std::all_of(sections.dense.begin(), sections.dense.end(),
                     [](auto& block) { return block.floats == 0; });
}

std::unique_ptr<Pending> ChannelClient::pull_async(const Pull& request) {
  std::vector<Part> parts(servers());
  auto groups = std::make_shared<std::vector<KeyGroups>>(add_sparse(
      request.sparse, [](const SparsePull& pull) { return pull.rows; }, parts));
  for (const DensePull& dense : request.dense) add_dense(dense.table, dense.values.size(), parts);
  auto pending = std::make_unique<PendingCalls>();
  const Header head = header(Method::pull);
  for (std::uint32_t s = 0; s < servers(); ++s) {
    if (asks_for_nothing(parts[s].sections)) continue;
    wire::PullDraft draft = wire::draft_pull(head, parts[s].sections);
    for (std::size_t i = 0; i < draft.keys.size(); ++i) {
      std::ranges::copy((*groups)[i].keys_of(s), draft.keys[i].begin());
    }
    pending->start(*channels_[s], s, head, std::move(draft.message));
  }
  const auto width_of = [this](std::uint32_t id) { return tables_.at(id).width; };
  pending->on_answer(
      [sparse = request.sparse, dense = request.dense, groups, parts = std::move(parts), width_of](
          std::uint32_t server, Reader answer) {
        for (std::size_t i = 0; i < sparse.size(); ++i) {
          const KeyGroups& keys = (*groups)[i];
          const std::size_t width = width_of(sparse[i].table);
          for (std::uint32_t g = keys.begin[server]; g < keys.begin[server + 1]; ++g) {
            answer.read(sparse[i].rows.data() + keys.first[g] * width, width * sizeof(float));
          }
        }
        for (std::size_t i = 0; i < dense.size(); ++i) {
          const Block& block = parts[server].blocks[i];
          answer.read(dense[i].values.data() + block.begin, block.size() * sizeof(float));
        }
        wire::expect_end(answer);
      },
      [sparse = request.sparse, groups, width_of] {
        for (std::size_t i = 0; i < sparse.size(); ++i) {
          copy_to_duplicates((*groups)[i], sparse[i].rows, width_of(sparse[i].table));
        }
      });
  return pending;
}

std::vector<wire::PushDraft> ChannelClient::draft_pushes(const Push& request) const {
  std::vector<Part> parts(servers());
  const std::vector<KeyGroups> groups = add_sparse(
      request.sparse, [](const SparsePush& push) { return push.gradients; }, parts);
  for (const DensePush& dense : request.dense) add_dense(dense.table, dense.gradients.size(), parts);
  std::vector<wire::PushDraft> drafts;
  for (std::uint32_t s = 0; s < servers(); ++s) {
    drafts.push_back(wire::draft_push(header(Method::push, request.thread), parts[s].sections));
    for (std::size_t i = 0; i < groups.size(); ++i) {
      std::ranges::copy(groups[i].keys_of(s), drafts[s].keys[i].begin());
    }
    for (std::size_t i = 0; i < request.dense.size(); ++i) {
      const Block& block = parts[s].blocks[i];
      std::ranges::copy(request.dense[i].gradients.subspan(block.begin, block.size()),
                        drafts[s].dense[i].begin());
    }
  }
  std::vector<float*> outputs(servers());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::uint32_t s = 0; s < servers(); ++s) outputs[s] = drafts[s].gradients[i].data();
    sum_by_group(groups[i], request.sparse[i].gradients, tables_.at(request.sparse[i].table).width, outputs);
  }
  return drafts;
}

void check_gradients(const TableConfig& config, std::span<const float> gradients) {
  if (are_finite(gradients)) return;
  throw Error(ErrorKind::data,
              "table '" + config.name + "': a gradient is NaN or infinite; nothing of this push was sent",
              "lower the learning rate, or look for a division by zero or a logarithm of zero in the loss");
}

std::unique_ptr<Pending> ChannelClient::push_async(const Push& request) {
  std::vector<wire::PushDraft> drafts = draft_pushes(request);
  for (const wire::PushDraft& draft : drafts) {
    for (std::size_t i = 0; i < draft.gradients.size(); ++i) {
      check_gradients(tables_.at(request.sparse[i].table), draft.gradients[i]);
    }
    for (std::size_t i = 0; i < draft.dense.size(); ++i) {
      check_gradients(tables_.at(request.dense[i].table), draft.dense[i]);
    }
  }
  auto pending = std::make_unique<PendingCalls>();
  for (std::uint32_t s = 0; s < servers(); ++s) {
    const auto is_empty = [](const auto& span) { return span.empty(); };
    const bool nothing =
        std::ranges::all_of(drafts[s].keys, is_empty) && std::ranges::all_of(drafts[s].dense, is_empty);
    // In sync mode every server counts the participants of a step, so it hears of empty parts too.
    if (nothing && options_.mode == Mode::async) continue;
    pending->start(*channels_[s], s, header(Method::push, request.thread), std::move(drafts[s].message));
  }
  return pending;
}

void ChannelClient::ask_all(Header head, const std::function<Message(std::uint32_t)>& make,
                            PendingCalls::Join join) {
  PendingCalls pending;
  pending.on_answer(std::move(join));
  for (std::uint32_t s = 0; s < servers(); ++s) pending.start(*channels_[s], s, head, make(s));
  pending.wait();
}

void ChannelClient::set_dense(std::uint32_t id, std::span<const float> values) {
  std::vector<Part> parts(servers());
  add_dense(id, values.size(), parts);
  const Header head = header(Method::set_dense);
  ask_all(head, [&](std::uint32_t s) {
    const std::span<const float> mine = values.subspan(parts[s].blocks[0].begin, parts[s].blocks[0].size());
    wire::Draft draft = wire::draft(head, sizeof(wire::Floats) + mine.size_bytes());
    draft.writer.value(parts[s].sections.dense[0]);
    draft.writer.array(mine);
    return std::move(draft.message);
  });
}

void ChannelClient::begin_pass(std::uint32_t threads) {
  if (options_.mode == Mode::async) return;
  const Header head = header(Method::begin_pass);
  ask_all(head, [&](std::uint32_t) {
    wire::Draft draft = wire::draft(head, sizeof threads);
    draft.writer.value(threads);
    return std::move(draft.message);
  });
}

void ChannelClient::leave_pass(std::uint32_t thread) {
  if (options_.mode == Mode::sync) ask_all(header(Method::leave_pass, thread));
}

void ChannelClient::barrier() {
  const Header head = header(Method::barrier);
  PendingCalls pending;
  pending.start(*channels_[0], 0, head, wire::draft(head, 0).message);
  pending.wait();
}

void ChannelClient::all_reduce_sum(std::span<double> values) {
  const Header head = header(Method::all_reduce);
  wire::Draft draft = wire::draft(head, sizeof(std::uint64_t) + values.size_bytes());
  draft.writer.value(std::uint64_t{values.size()});
  draft.writer.array(std::span<const double>(values));
  PendingCalls pending;
  pending.on_answer([values](std::uint32_t, Reader answer) {
    answer.read(values.data(), values.size_bytes());
    wire::expect_end(answer);
  });
  pending.start(*channels_[0], 0, head, std::move(draft.message));
  pending.wait();
}

Message ChannelClient::directory_request(const Header& head, const std::string& directory, std::size_t more,
                                         const std::function<void(Writer&)>& write_more) const {
  wire::Draft draft = wire::draft(head, wire::text_size(directory) + more);
  wire::write_text(draft.writer, directory);
  if (write_more) write_more(draft.writer);
  return std::move(draft.message);
}

std::vector<std::pair<std::uint64_t, std::uint32_t>> ChannelClient::save_parts(const std::string& directory,
                                                                               std::uint64_t save) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> parts(servers());
  const Header head = header(Method::save_part);
  ask_all(
      head,
      [&](std::uint32_t) {
        return directory_request(head, directory, sizeof save, [&](Writer& writer) { writer.value(save); });
      },
      [&](std::uint32_t server, Reader answer) {
        parts[server].first = answer.value<std::uint64_t>();
        parts[server].second = answer.value<std::uint32_t>();
      });
  return parts;
}

std::uint64_t ChannelClient::next_save(const std::string& directory) {
  const Header head = header(Method::save_next);
  std::uint64_t save = 0;
  ask_all(
      head, [&](std::uint32_t) { return directory_request(head, directory); },
      [&](std::uint32_t, Reader answer) { save = std::max(save, answer.value<std::uint64_t>()); });
  return save;
}

void ChannelClient::save(const std::string& directory) {
  const std::uint64_t save = next_save(directory);
  const Header clean = header(Method::save_clean);
  const auto make_clean = [&](std::uint32_t) { return directory_request(clean, directory); };
  try {
    const auto parts = save_parts(directory, save);
    const Header commit = header(Method::save_commit);
    constexpr std::size_t kPartBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);
    const auto write_parts = [&](Writer& writer) {
      writer.value(save);
      writer.value(static_cast<std::uint32_t>(parts.size()));
      for (const auto& [bytes, checksum] : parts) {
        writer.value(bytes);
        writer.value(checksum);
      }
    };
    ask_all(commit, [&](std::uint32_t) {
      return directory_request(commit, directory,
                               sizeof save + sizeof(std::uint32_t) + parts.size() * kPartBytes, write_parts);
    });
  } catch (Error& error) {
    try {
      ask_all(clean, make_clean);
    } catch (const Error&) {
      // The first error says what went wrong; leftover parts that no manifest names are never loaded.
    }
    error.while_doing("saving to " + directory);
    throw;
  }
  ask_all(clean, make_clean);
}

void ChannelClient::load(const std::string& directory) {
  try {
    const Header prepare = header(Method::load_prepare);
    std::vector<std::uint64_t> saves(servers());
    ask_all(
        prepare, [&](std::uint32_t) { return directory_request(prepare, directory); },
        [&](std::uint32_t server, Reader answer) { saves[server] = answer.value<std::uint64_t>(); });
    for (std::uint32_t s = 1; s < servers(); ++s) {
      if (saves[s] == saves[0]) continue;
      throw Error(
          ErrorKind::data,
          channels_[0]->name() + " and " + channels_[s]->name() + " find different saves in " + directory,
          "copy one save to all hosts, or use a shared directory");
    }
  } catch (Error& error) {
    try {
      ask_all(header(Method::load_abort));
    } catch (const Error&) {
      // The first error says what went wrong.
    }
    error.while_doing("loading from " + directory);
    throw;
  }
  ask_all(header(Method::load_commit));
}

std::uint64_t ChannelClient::rows(std::uint32_t id) {
  static_cast<void>(table(id, TableConfig::Kind::sparse));
  const Header head = header(Method::rows);
  std::uint64_t total = 0;
  ask_all(
      head,
      [&](std::uint32_t) {
        wire::Draft draft = wire::draft(head, sizeof id);
        draft.writer.value(id);
        return std::move(draft.message);
      },
      [&](std::uint32_t, Reader answer) { total += answer.value<std::uint64_t>(); });
  return total;
}

void ChannelClient::goodbye() {
  if (said_goodbye_.exchange(true)) return;
  ask_all(header(Method::goodbye));
}

}  // namespace

std::uint64_t make_incarnation() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

Message make_hello(const ClientOptions& client, std::uint64_t incarnation, std::uint32_t rank,
                   std::uint32_t servers) {
  std::vector<std::string> tables;
  std::size_t size = 5 * sizeof(std::uint32_t) + wire::text_size(client.launcher);
  for (const TableConfig& config : client.tables) {
    tables.push_back(describe(config));
    size += wire::text_size(tables.back());
  }
  wire::Draft draft = wire::draft({wire::Method::hello, client.trainer, 0, incarnation, client.epoch}, size);
  draft.writer.value(static_cast<std::uint32_t>(client.mode));
  draft.writer.value(client.trainers);
  draft.writer.value(servers);
  draft.writer.value(rank);
  draft.writer.value(static_cast<std::uint32_t>(tables.size()));
  for (const std::string& text : tables) wire::write_text(draft.writer, text);
  wire::write_text(draft.writer, client.launcher);
  return std::move(draft.message);
}

bool read_hello_answer(Reader answer) {
  const auto late = answer.value<std::uint32_t>();
  wire::expect_end(answer);
  return late != 0;
}

std::unique_ptr<Client> make_channel_client(const ClientOptions& options, std::uint64_t incarnation,
                                            std::vector<std::unique_ptr<Channel>> channels, bool is_late) {
  return std::make_unique<ChannelClient>(options, incarnation, std::move(channels), is_late);
}

}  // namespace fleetrun::ps
