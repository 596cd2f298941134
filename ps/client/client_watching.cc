// Looking inside the servers.
#include <algorithm>

#include "ps/client/channel_client_state.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

StoredRows ChannelClient::get_dense(const TableConfig& config) {
  StoredRows rows;
  const wire::Header head = header(wire::Method::get);
  ask_all(
      head,
      [&](std::uint32_t) {
        wire::Draft draft = wire::draft(head, sizeof(wire::Floats));
        draft.writer.value(wire::Floats{config.id, 0, 0});
        return std::move(draft.message);
      },
      [&](std::uint32_t, Reader answer) {
        const auto floats = answer.value<std::uint32_t>();
        static_cast<void>(answer.value<std::uint32_t>());
        // Blocks follow each other in the order of the servers.
        rows.values.resize(rows.width + floats);
        answer.read(rows.values.data() + rows.width, floats * sizeof(float));
        rows.width += floats;
        wire::expect_end(answer);
      });
  return rows;
}

StoredRows ChannelClient::get(std::uint32_t id, std::span<const std::uint64_t> keys) {
  const auto found = tables_.find(id);
  if (found != tables_.end() && found->second.kind == TableConfig::Kind::dense) {
    if (keys.empty()) return get_dense(found->second);
    throw Error(ErrorKind::usage, "table '" + found->second.name + "' is dense and has no keys",
                "without keys, all its values are given");
  }
  StoredRows rows;
  rows.width = table(id, TableConfig::Kind::sparse).width;
  rows.found.resize(keys.size());
  rows.values.resize(keys.size() * rows.width);
  const KeyGroups groups = group_keys(keys, servers());
  const wire::Header head = header(wire::Method::get);
  std::vector<StoredStatistics> statistics(groups.keys.size());
  std::vector<std::uint32_t> flags(groups.keys.size());
  std::vector<float> values(groups.keys.size() * rows.width);
  bool counts = false;
  ask_all(
      head,
      [&](std::uint32_t server) {
        const auto mine = groups.keys_of(server);
        wire::Draft draft = wire::draft(head, sizeof(wire::Floats) + mine.size_bytes());
        draft.writer.value(wire::Floats{id, 0, mine.size()});
        draft.writer.array(std::span<const std::uint64_t>(mine));
        return std::move(draft.message);
      },
      [&](std::uint32_t server, Reader answer) {
        const std::size_t begin = groups.begin[server], many = groups.begin[server + 1] - begin;
        if (answer.value<std::uint32_t>() != rows.width)
          throw Error(ErrorKind::data, channels_[server]->name() + " has rows of another width");
        counts = answer.value<std::uint32_t>() != 0;
        answer.read(flags.data() + begin, many * sizeof(std::uint32_t));
        if (counts) answer.read(statistics.data() + begin, many * sizeof(StoredStatistics));
        answer.read(values.data() + begin * rows.width, many * rows.width * sizeof(float));
        wire::expect_end(answer);
      });
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t group = groups.group[i];
    rows.found[i] = flags[group] != 0;
    if (counts) rows.statistics.push_back(statistics[group]);
    std::copy_n(values.data() + group * rows.width, rows.width, rows.values.data() + i * rows.width);
  }
  return rows;
}

std::uint64_t ChannelClient::shrink(std::uint32_t id) {
  static_cast<void>(table(id, TableConfig::Kind::sparse));
  if (before_.is_under_way()) return 0;
  wire::Header head = header(wire::Method::shrink);
  // Who only looks on has no numbers: what it asks is not sent twice.
  if (options_.trainer != wire::kObserver) head.sequence = changes_.take();
  NumberedCalls pending(changes_, head.sequence, options_.deadlines.saving);
  std::uint64_t erased = 0;
  pending.on_answer([&](std::uint32_t, Reader answer) {
    if (answer.remaining() != 0) erased += answer.value<std::uint64_t>();
  });
  for (std::uint32_t s = 0; s < servers(); ++s) {
    wire::Draft draft = wire::draft(head, sizeof id);
    draft.writer.value(id);
    pending.start(*channels_[s], s, head, std::move(draft.message));
  }
  pending.wait();
  return erased;
}

std::vector<std::string> ChannelClient::stat() {
  std::vector<std::string> texts(servers());
  const wire::Header head = header(wire::Method::stat);
  ask_all(
      head, [&](std::uint32_t) { return wire::draft(head, 0).message; },
      [&](std::uint32_t server, Reader answer) {
        for (auto left = answer.value<std::uint32_t>(); left > 0; --left) {
          static_cast<void>(answer.value<std::uint64_t>());  // id and kind
          static_cast<void>(answer.value<std::uint64_t>());
          static_cast<void>(wire::read_text(answer));
        }
        texts[server] = wire::read_text(answer);
        wire::expect_end(answer);
      });
  return texts;
}

}  // namespace fleetrun::ps
