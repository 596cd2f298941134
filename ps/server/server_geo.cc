// Geo mode: which rows other trainers have changed, and their values.
#include <algorithm>

#include "ps/server/server_state.h"

namespace fleetrun::ps {

// Loaded tables have rows that no trainer has heard of:
// what was recorded of the ones before says nothing about them.
void Server::State::follow_tables() {
  const std::lock_guard lock(mutex);
  if (recorded_tables.lock() == tables) return;
  if (!recorded_tables.expired() || recorded_any) touched.restart();
  recorded_any = true;
  recorded_tables = tables;
}

void Server::State::record_touched(const wire::Header& header, const wire::PushRequest& request) {
  if (options.mode != Mode::geo) return;
  follow_tables();
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    touched.record(header.trainer, request.sections.sparse[i].table, request.keys[i]);
  }
}

Message Server::State::pull_touched(const wire::Header& header, Reader& body) {
  const auto number = body.value<std::uint64_t>();
  const auto wanted = body.value<std::uint64_t>();
  wire::expect_end(body);
  std::uint64_t widest = 1;
  for (const TableConfig& table : options.tables) {
    if (table.kind == TableConfig::Kind::sparse) widest = std::max(widest, table.width);
  }
  const std::uint64_t fitting = wire::kLongestMessage / 2 / (sizeof(std::uint64_t) + widest * sizeof(float));
  const std::uint64_t max = std::clamp<std::uint64_t>(wanted, 1, fitting);
  follow_tables();
  const std::shared_ptr<TableSet> set = current();
  const TouchedKeys::Answer answer = touched.ask({header.trainer, header.incarnation, number}, max);
  std::vector<wire::Rows> sections;
  std::size_t size = sizeof answer.generation + 2 * sizeof(std::uint32_t);
  for (const auto& [table, keys] : answer.keys) {
    const auto width = static_cast<std::uint32_t>(set->sparse(table).config().width);
    sections.push_back({table, width, keys.size()});
    size += sizeof(wire::Rows) + keys.size() * (sizeof(std::uint64_t) + width * sizeof(float));
  }
  Message out(size);
  Writer writer(out);
  writer.value(answer.generation);
  writer.value(std::uint32_t{answer.more ? 1u : 0u});
  writer.value(static_cast<std::uint32_t>(sections.size()));
  writer.array(std::span<const wire::Rows>(sections));
  for (const auto& [table, keys] : answer.keys) writer.array(std::span<const std::uint64_t>(keys));
  for (const wire::Rows& rows : sections) {
    set->sparse(rows.table)
        .pull(answer.keys.at(rows.table), writer.room<float>(rows.keys * rows.width).data());
  }
  return out;
}

}  // namespace fleetrun::ps
