// What a server has done so far, and who only looks on: an observer has proved the job's secret, as everybody
// has, and is not a trainer. Nobody waits for it, it keeps no job alive,
// and it changes nothing that training depends on.
#include <algorithm>
#include <cstring>
#include <thread>

#include "ps/base/stored_rows.h"
#include "ps/server/server_state.h"
#include "ps/server/stat_json.h"

namespace fleetrun::ps {
namespace {

constexpr unsigned kMaxShrinkers = 8;

bool is_for_trainers(wire::Method method) noexcept {
  using enum wire::Method;
  switch (method) {
    case attend:
    case goodbye:
    case pull:
    case take_staleness:
    case keep_pace:
    case push:
    case assign:
    case set_dense:
    case begin_epoch:
    case leave_epoch:
    case barrier:
    case all_reduce:
    case load_prepare:
    case load_commit:
    case load_abort:
    case pull_touched:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Server::State::check_observer(wire::Method method) const {
  if (!is_for_trainers(method)) return;
  throw Error(ErrorKind::config, "who looks on may not " + std::string(wire::to_string(method)) +
                                     ": that is for the job's trainers");
}

Message Server::State::hello_observer(Reader& body) const {
  static_cast<void>(body.value<std::uint32_t>());  // mode and trainers: not an observer's to know
  static_cast<void>(body.value<std::uint32_t>());
  compare("the number of servers", std::to_string(options.servers),
          std::to_string(body.value<std::uint32_t>()));
  compare("the server's rank", std::to_string(options.rank), std::to_string(body.value<std::uint32_t>()));
  return wire::greet({});
}

Message Server::State::get_dense(const DenseTable& table) const {
  Message out(2 * sizeof(std::uint32_t) + table.size() * sizeof(float));
  Writer writer(out);
  writer.value(static_cast<std::uint32_t>(table.size()));
  writer.value(std::uint32_t{0});
  table.pull(writer.room<float>(table.size()));
  return out;
}

Message Server::State::get(Reader& body) const {
  const wire::Floats asked = wire::read_floats(body);
  Message copy;
  const auto keys = body.array<std::uint64_t>(asked.floats, copy);
  wire::expect_end(body);
  const std::shared_ptr<TableSet> set = current();
  const auto config = std::ranges::find(options.tables, asked.table, &TableConfig::id);
  if (config != options.tables.end() && config->kind == TableConfig::Kind::dense)
    return get_dense(set->dense(asked.table));
  SparseTable& table = set->sparse(asked.table);
  const RowLayout& layout = table.layout();
  const bool counts = layout.statistics != 0;
  const std::size_t row =
      sizeof(std::uint32_t) + (counts ? sizeof(StoredStatistics) : 0) + layout.width * sizeof(float);
  if (keys.size() > wire::kLongestMessage / row)
    throw Error(ErrorKind::data, std::to_string(keys.size()) + " rows do not fit into one answer",
                "ask for fewer");
  Message out(2 * sizeof(std::uint32_t) + keys.size() * row);
  std::memset(out.data(), 0, out.size());
  Writer writer(out);
  writer.value(static_cast<std::uint32_t>(layout.width));
  writer.value(std::uint32_t{counts ? 1u : 0u});
  const auto found = writer.room<std::uint32_t>(keys.size());
  const auto statistics = writer.room<StoredStatistics>(counts ? keys.size() : 0);
  const auto values = writer.room<float>(keys.size() * layout.width);
  table.look(keys, [&](std::size_t i, std::span<const float> stored) {
    if (stored.empty()) return;
    found[i] = 1;
    if (counts) {
      const Statistics now = read_statistics(stored.data());
      statistics[i] = {now.slot, now.unseen_days(), now.delta_score, now.show, now.click};
    }
    std::ranges::copy(stored.subspan(layout.statistics, layout.width),
                      values.begin() + static_cast<std::ptrdiff_t>(i * layout.width));
  });
  return out;
}

Message Server::State::shrink(Reader& body) {
  const auto id = body.value<std::uint32_t>();
  wire::expect_end(body);
  return message_of(
      current()->shrink(id, std::clamp(std::thread::hardware_concurrency(), 1u, kMaxShrinkers)));
}

Message Server::State::who_waits(Reader& body) const {
  const std::chrono::milliseconds patience(body.value<std::uint64_t>());
  wire::expect_end(body);
  const TrainerWaits now = barrier_service.waits();
  const std::string text = now.stuck >= patience ? text_of(now.waits) : "";
  Message out(wire::text_size(text));
  Writer writer(out);
  wire::write_text(writer, text);
  return out;
}

std::string Server::State::stat_text() const {
  return stat_json({options, *metrics, *current(), stale_requests, staleness.counts(),
                    barrier_service.waits().waits,
                    following ? std::optional(following->feed.is_followed()) : std::nullopt, held_stats()});
}

std::string Server::stat() const {
  return state_->stat_text();
}

Message Server::State::stat() const {
  const std::string text = stat_text();
  std::size_t size = sizeof(std::uint32_t) + wire::text_size(text);
  for (const TableConfig& table : options.tables)
    size += 2 * sizeof(std::uint32_t) + sizeof table.width + wire::text_size(table.name);
  Message out(size);
  Writer writer(out);
  writer.value(static_cast<std::uint32_t>(options.tables.size()));
  for (const TableConfig& table : options.tables) {
    writer.value(table.id);
    writer.value(static_cast<std::uint32_t>(table.kind));
    writer.value(table.width);
    wire::write_text(writer, table.name);
  }
  wire::write_text(writer, text);
  return out;
}

}  // namespace fleetrun::ps
