// Pull: distinct keys by server, answers scattered to each key's first position, then copied to its others.
// Push: gradients of equal keys added up straight into the message; every message is complete and checked
// before the first one is sent, so that a gradient that is not a number changes nothing anywhere.
#include <algorithm>

#include "ps/base/row_copy.h"
#include "ps/client/channel_client_state.h"
#include "ps/table/push_values.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

using wire::Header;
using wire::Method;

namespace {

void copy_to_duplicates(const KeyGroups& groups, std::span<float> rows, std::size_t width) {
  if (groups.keys.size() == groups.group.size()) return;
  for (std::size_t i = 0; i < groups.group.size(); ++i) {
    const std::size_t first = groups.first[groups.group[i]];
    if (first != i) copy_row(rows.data() + i * width, rows.data() + first * width, width);
  }
}

}  // namespace

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

void ChannelClient::check_rows(const TableConfig& config, std::uint64_t width, std::size_t keys,
                               std::size_t floats) const {
  if (floats == keys * width) return;
  throw Error(ErrorKind::config, "table '" + config.name + "': " + std::to_string(keys) + " keys of width " +
                                     std::to_string(width) + " need " + std::to_string(keys * width) +
                                     " floats, there are " + std::to_string(floats));
}

wire::Rows ChannelClient::pulled_rows(const SparsePull& pull, bool create) const {
  const TableConfig& config = table(pull.table, TableConfig::Kind::sparse);
  check_rows(config, pulled_width(config), pull.keys.size(), pull.rows.size());
  wire::Rows out{pull.table, static_cast<std::uint32_t>(pulled_width(config)), 0,
                 create ? 0 : wire::kNoNewRows, 0};
  out.set_encoding(options_.encodings.rows);
  const bool has_counts = config.accessor.kind == Accessor::Kind::ctr;
  if (has_counts && out.encoding() != Encoding::float32) out.flags |= wire::kCountsFirst;
  return out;
}

wire::Rows ChannelClient::pushed_rows(const SparsePush& push) const {
  const TableConfig& config = table(push.table, TableConfig::Kind::sparse);
  check_rows(config, config.width, push.keys.size(), push.gradients.size());
  for (const auto& [what, counts] : {std::pair("shows", push.shows), std::pair("clicks", push.clicks)}) {
    if (counts.empty() || counts.size() == push.keys.size()) continue;
    throw Error(ErrorKind::config, "table '" + config.name + "': " + std::to_string(push.keys.size()) +
                                       " keys come with " + std::to_string(counts.size()) + " " + what);
  }
  const bool counts = config.accessor.kind != Accessor::Kind::plain;
  wire::Rows out{push.table, static_cast<std::uint32_t>(config.width), 0, counts ? wire::kStatistics : 0,
                 push.slot};
  out.set_encoding(options_.encodings.gradients);
  return out;
}

void ChannelClient::add_dense(std::uint32_t id, std::size_t floats, std::vector<RequestPart>& parts) const {
  const TableConfig& config = table(id, TableConfig::Kind::dense);
  if (floats != config.width) {
    throw Error(ErrorKind::config, "table '" + config.name + "' has " + std::to_string(config.width) +
                                       " values, the request has " + std::to_string(floats));
  }
  for (std::uint32_t s = 0; s < servers(); ++s) {
    const Block block = dense_block(config, servers(), s);
    // Every server gets every section, so that part i of a request is section i on all of them.
    parts[s].sections.dense.push_back({id, 0, block.size()});
    parts[s].blocks.push_back(block);
  }
}

ChannelClient::Groups ChannelClient::add_sparse(const auto& sections, const auto& rows_of,
                                                const auto& groups_of,
                                                std::vector<RequestPart>& parts) const {
  Groups groups;
  groups.reserve(sections.size());
  for (const auto& section : sections) {
    wire::Rows rows = rows_of(section);
    groups.push_back(groups_of(section));
    for (std::uint32_t s = 0; s < servers(); ++s) {
      rows.keys = groups.back()->keys_of(s).size();
      parts[s].sections.sparse.push_back(rows);
    }
  }
  return groups;
}

// The shows and clicks of a section, those of equal keys added up, straight into the messages.
static void sum_counts(const KeyGroups& groups, const SparsePush& push, std::size_t section,
                       std::vector<wire::PushDraft>& drafts) {
  std::vector<float*> shows;
  std::vector<float*> clicks;
  for (wire::PushDraft& draft : drafts) {
    shows.push_back(draft.shows[section].data());
    clicks.push_back(draft.clicks[section].data());
    std::ranges::fill(draft.clicks[section], 0.0f);
  }
  if (push.shows.empty()) {
    count_by_group(groups, shows);
  } else {
    sum_by_group(groups, push.shows, 1, shows);
  }
  if (!push.clicks.empty()) sum_by_group(groups, push.clicks, 1, clicks);
}

static bool asks_for_nothing(const wire::Sections& sections) {
  return std::all_of(sections.sparse.begin(), sections.sparse.end(),
                     [](auto& rows) { return rows.keys == 0; }) &&
         std::all_of(sections.dense.begin(), sections.dense.end(),
                     [](auto& block) { return block.floats == 0; });
}

// The rows of a section of an answer: where they lie, or decoded.
static const float* rows_of(Reader& answer, const wire::Rows& section, Message& copy,
                            std::vector<float>& decoded) {
  if (section.encoding() == Encoding::float32)
    return answer.array<float>(section.keys * section.width, copy).data();
  decoded.resize(section.keys * section.width);
  const auto words = answer.array<std::uint32_t>(section.bytes() / sizeof(std::uint32_t), copy);
  wire::decode_rows(section, std::as_bytes(words).data(), decoded);
  return decoded.data();
}

std::unique_ptr<Pending> ChannelClient::pull_async(const Pull& request) {
  std::vector<RequestPart> parts(servers());
  const auto find_groups = [this](const SparsePull& pull) {
    auto found = std::make_shared<const KeyGroups>(group_keys(pull.keys, servers()));
    recent_.add(pull.table, found);
    return found;
  };
  const Groups groups = add_sparse(
      request.sparse, [&](const SparsePull& pull) { return pulled_rows(pull, request.create); }, find_groups,
      parts);
  for (const DensePull& dense : request.dense) add_dense(dense.table, dense.values.size(), parts);
  auto pending = std::make_unique<PendingCalls>(options_.deadlines.data);
  const Header head = header(Method::pull, request.thread);
  for (std::uint32_t s = 0; s < servers(); ++s) {
    if (asks_for_nothing(parts[s].sections)) continue;
    wire::PullDraft draft = wire::draft_pull(head, parts[s].sections, channels_[s]->messages());
    for (std::size_t i = 0; i < draft.keys.size(); ++i) {
      std::ranges::copy(groups[i]->keys_of(s), draft.keys[i].begin());
    }
    pending->start(*channels_[s], s, head, std::move(draft.message));
  }
  const auto width_of = [this](std::uint32_t id) { return pulled_width(tables_.at(id)); };
  pending->on_answer(
      [sparse = request.sparse, dense = request.dense, groups, parts = std::move(parts), width_of](
          std::uint32_t server, Reader answer) {
        for (std::size_t i = 0; i < sparse.size(); ++i) {
          const KeyGroups& keys = *groups[i];
          const std::size_t width = width_of(sparse[i].table);
          Message copy;
          const wire::Rows& section = parts[server].sections.sparse[i];
          std::vector<float> decoded;
          const float* row = rows_of(answer, section, copy, decoded);
          for (std::uint32_t g = keys.begin[server]; g < keys.begin[server + 1]; ++g, row += width)
            copy_row(sparse[i].rows.data() + keys.first[g] * width, row, width);
        }
        for (std::size_t i = 0; i < dense.size(); ++i) {
          const Block& block = parts[server].blocks[i];
          answer.read(dense[i].values.data() + block.begin, block.size() * sizeof(float));
        }
        wire::expect_end(answer);
      },
      [sparse = request.sparse, groups, width_of] {
        for (std::size_t i = 0; i < sparse.size(); ++i) {
          copy_to_duplicates(*groups[i], sparse[i].rows, width_of(sparse[i].table));
        }
      });
  return pending;
}

std::vector<wire::PushDraft> ChannelClient::draft_pushes(const Push& request, std::size_t squares) {
  std::vector<RequestPart> parts(servers());
  const auto find_groups = [this](const SparsePush& push) {
    auto found = recent_.take(push.table, push.keys);
    return found ? found : std::make_shared<const KeyGroups>(group_keys(push.keys, servers()));
  };
  const Groups groups = add_sparse(
      request.sparse, [this](const SparsePush& push) { return pushed_rows(push); }, find_groups, parts);
  for (const DensePush& dense : request.dense) add_dense(dense.table, dense.gradients.size(), parts);
  for (RequestPart& part : parts) {
    for (wire::Floats& block : part.sections.dense)
      block.encoded = static_cast<std::uint32_t>(options_.encodings.gradients);
  }
  std::vector<wire::PushDraft> drafts;
  for (std::uint32_t s = 0; s < servers(); ++s) {
    const wire::PushExtras extras{
        rate_, squares, is_counted_ ? std::span(request.threads) : std::span<const std::uint32_t>()};
    drafts.push_back(wire::draft_push(header(Method::push, request.thread), parts[s].sections, extras,
                                      channels_[s]->messages()));
    for (std::size_t i = 0; i < groups.size(); ++i) {
      std::ranges::copy(groups[i]->keys_of(s), drafts[s].keys[i].begin());
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
    sum_by_group(*groups[i], request.sparse[i].gradients, tables_.at(request.sparse[i].table).width, outputs);
    if (parts[0].sections.sparse[i].has(wire::kStatistics))
      sum_counts(*groups[i], request.sparse[i], i, drafts);
  }
  return drafts;
}

// Gradients that travel shorter, into the messages.
void ChannelClient::encode(const Push& request, std::vector<wire::PushDraft>& drafts) {
  const Encoding encoding = options_.encodings.gradients;
  if (encoding == Encoding::float32) return;
  for (std::uint32_t s = 0; s < servers(); ++s) {
    wire::PushDraft& draft = drafts[s];
    for (std::size_t i = 0; i < draft.gradients.size(); ++i)
      feedback_.encode_rows(encoding, request.sparse[i].table, draft.keys[i], draft.gradients[i],
                            draft.encoded[i]);
    for (std::size_t i = 0; i < draft.dense.size(); ++i)
      feedback_.encode_dense(encoding, request.dense[i].table, s, draft.dense[i],
                             draft.encoded[draft.gradients.size() + i]);
  }
}

std::size_t ChannelClient::split_norms() const {
  if (options_.mode != Mode::sync || servers() == 1) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(tables_, [](const auto& table) { return table.second.clip.is_norm(); }));
}

void ChannelClient::measure(const Header& head, std::vector<wire::PushDraft>& drafts) {
  // In the order of the servers, so that all trainers get the same.
  std::vector<float> sums(drafts.front().squares.size());
  PendingCalls pending{std::chrono::milliseconds()};
  watch(pending);
  for (std::uint32_t s = 0; s < servers(); ++s)
    pending.start(*channels_[s], s, head, wire::copy_as(Method::measure, drafts[s].message));
  pending.on_answer([&sums](std::uint32_t, Reader answer) {
    for (float& sum : sums) sum += answer.value<float>();
    wire::expect_end(answer);
  });
  pending.wait();
  for (wire::PushDraft& draft : drafts) std::ranges::copy(sums, draft.squares.begin());
}

// The steps that a push has; none for a trainer that was not started again.
std::vector<ChannelClient::ThreadStep> ChannelClient::next_steps(const Push& request) {
  std::vector<ThreadStep> out;
  if (before_.is_idle() || request.thread == kNoThread) return out;
  if (request.threads.empty()) return {{request.thread, before_.next_step(request.thread)}};
  for (const std::uint32_t thread : request.threads) out.push_back({thread, before_.next_step(thread)});
  return out;
}

std::unique_ptr<Pending> ChannelClient::push_async(const Push& request) {
  const std::vector<ThreadStep> steps = next_steps(request);
  const auto has_all = [&](const auto& has) { return !steps.empty() && std::ranges::all_of(steps, has); };
  const auto is_on = [&](std::uint32_t server) {
    return has_all([&](const ThreadStep& at) { return before_.has(server, at.thread, at.step); });
  };
  if (has_all([&](const ThreadStep& at) { return before_.is_everywhere(at.thread, at.step); }))
    return std::make_unique<PendingCalls>();
  // Where a server has had the step, its part is not pushed again: the others say what it was.
  bool is_anywhere = false;
  for (std::uint32_t s = 0; s < servers(); ++s) is_anywhere = is_anywhere || is_on(s);
  const std::size_t norms = is_anywhere ? 0 : split_norms();
  std::vector<wire::PushDraft> drafts = draft_pushes(request, norms);
  for (const wire::PushDraft& draft : drafts) {
    for (std::size_t i = 0; i < draft.gradients.size(); ++i) {
      check_gradients(tables_.at(request.sparse[i].table), draft.gradients[i], "sent");
      check_counts(tables_.at(request.sparse[i].table), draft.shows[i], draft.clicks[i], "sent");
    }
    for (std::size_t i = 0; i < draft.dense.size(); ++i) {
      check_gradients(tables_.at(request.dense[i].table), draft.dense[i], "sent");
    }
  }
  encode(request, drafts);
  Header head = header(Method::push, request.thread);
  head.sequence = changes_.take();
  auto pending = std::make_unique<NumberedCalls>(
      changes_, head.sequence,
      options_.mode == Mode::sync ? std::chrono::milliseconds() : options_.deadlines.data);
  if (options_.mode == Mode::sync) watch(*pending);
  for (wire::PushDraft& draft : drafts) wire::set_sequence(draft.message, head.sequence);
  if (norms != 0) {
    Header measured = head;
    measured.method = Method::measure;
    measure(measured, drafts);
  }
  // All servers hear of every change, also where they have no part in it:
  // what one of them lacks is then known.
  for (std::uint32_t s = 0; s < servers(); ++s) {
    if (is_on(s)) {
      drafts[s] = wire::draft_push(header(Method::push, wire::kNoStep), {});
      wire::set_sequence(drafts[s].message, head.sequence);
    }
    pending->start(*channels_[s], s, head, std::move(drafts[s].message));
  }
  return pending;
}

void ChannelClient::set_dense(std::uint32_t id, std::span<const float> values) {
  if (before_.is_under_way()) return;
  std::vector<RequestPart> parts(servers());
  add_dense(id, values.size(), parts);
  Header head = header(Method::set_dense);
  head.sequence = changes_.take();
  NumberedCalls pending(changes_, head.sequence);
  for (std::uint32_t s = 0; s < servers(); ++s) {
    const std::span<const float> mine = values.subspan(parts[s].blocks[0].begin, parts[s].blocks[0].size());
    wire::Draft draft = wire::draft(head, sizeof(wire::Floats) + mine.size_bytes());
    draft.writer.value(parts[s].sections.dense[0]);
    draft.writer.array(mine);
    pending.start(*channels_[s], s, head, std::move(draft.message));
  }
  pending.wait();
}

void ChannelClient::assign(std::uint32_t id, std::span<const std::uint64_t> keys,
                           std::span<const float> rows) {
  const TableConfig& config = table(id, TableConfig::Kind::sparse);
  check_rows(config, config.width, keys.size(), rows.size());
  const KeyGroups every = group_keys(keys, 1);
  for (std::size_t i = 0; every.keys.size() != keys.size() && i < keys.size(); ++i) {
    if (every.first[every.group[i]] == i) continue;
    throw Error(ErrorKind::config,
                "table '" + config.name + "': key " + std::to_string(static_cast<std::int64_t>(keys[i])) +
                    " is there twice, at " + std::to_string(every.first[every.group[i]]) + " and " +
                    std::to_string(i),
                "give each key one row to assign");
  }
  check_assigned(config, rows);
  // What a trainer that was started again has assigned before is not undone.
  if (before_.is_under_way()) return;
  const std::size_t at_once = std::max<std::size_t>(1, kAssignedAtOnce / config.width);
  for (std::size_t at = 0; at < keys.size(); at += at_once) {
    const std::size_t count = std::min(at_once, keys.size() - at);
    assign_part(config, keys.subspan(at, count), rows.subspan(at * config.width, count * config.width));
  }
}

void ChannelClient::assign_part(const TableConfig& config, std::span<const std::uint64_t> keys,
                                std::span<const float> rows) {
  const KeyGroups groups = group_keys(keys, servers());
  Header head = header(Method::assign);
  head.sequence = changes_.take();
  NumberedCalls pending(changes_, head.sequence, options_.deadlines.data);
  for (std::uint32_t s = 0; s < servers(); ++s) {
    const auto mine = groups.keys_of(s);
    const wire::Rows section{config.id, static_cast<std::uint32_t>(config.width), mine.size(), 0, 0};
    wire::PushDraft draft = wire::draft_push(head, {{section}, {}});
    std::ranges::copy(mine, draft.keys[0].begin());
    float* out = draft.gradients[0].data();
    for (std::uint32_t g = groups.begin[s]; g < groups.begin[s + 1]; ++g, out += config.width)
      copy_row(out, rows.data() + groups.first[g] * config.width, config.width);
    pending.start(*channels_[s], s, head, std::move(draft.message));
  }
  pending.wait();
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

}  // namespace fleetrun::ps
