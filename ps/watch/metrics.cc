#include "ps/watch/metrics.h"

namespace fleetrun::ps {
namespace {

void add(std::atomic<std::uint64_t>& counter, std::uint64_t many) noexcept {
  counter.fetch_add(many, std::memory_order_relaxed);
}

std::uint64_t read(const std::atomic<std::uint64_t>& counter) noexcept {
  return counter.load(std::memory_order_relaxed);
}

}  // namespace

Metrics::Metrics(const std::vector<TableConfig>& tables) {
  for (const TableConfig& table : tables) tables_.try_emplace(table.id);
}

Respond Metrics::count(const std::shared_ptr<Metrics>& metrics, wire::Method method, std::size_t bytes,
                       Respond respond) {
  Kind& kind = metrics->kinds_.at(static_cast<std::size_t>(method));
  add(kind.bytes_in, bytes);
  add(kind.begun, 1);
  return [metrics, &kind, respond = std::move(respond),
          began = std::chrono::steady_clock::now()](Outcome outcome) {
    const auto took = std::chrono::steady_clock::now() - began;
    kind.nanoseconds.add(static_cast<std::uint64_t>(took / std::chrono::nanoseconds(1)));
    if (const Message* answer = std::get_if<Message>(&outcome))
      add(kind.bytes_out, answer->size());
    else
      add(kind.errors, 1);
    respond(std::move(outcome));
  };
}

void Metrics::pulled(const wire::Sections& sections) noexcept {
  for (const wire::Rows& rows : sections.sparse) {
    if (const auto found = tables_.find(rows.table); found != tables_.end())
      add(found->second.pulled, rows.keys);
  }
  for (const wire::Floats& block : sections.dense) {
    if (const auto found = tables_.find(block.table); found != tables_.end()) add(found->second.pulled, 1);
  }
}

void Metrics::pushed(const wire::Sections& sections) noexcept {
  for (const wire::Rows& rows : sections.sparse) {
    if (const auto found = tables_.find(rows.table); found != tables_.end())
      add(found->second.pushed, rows.keys);
  }
  for (const wire::Floats& block : sections.dense) {
    if (const auto found = tables_.find(block.table); found != tables_.end()) add(found->second.pushed, 1);
  }
}

CallCounts Metrics::calls(wire::Method method) const {
  const Kind& kind = kinds_.at(static_cast<std::size_t>(method));
  CallCounts out;
  // Counted where their times are, so that both agree while calls go on.
  out.nanoseconds = kind.nanoseconds.read();
  out.calls = out.nanoseconds.count();
  out.errors = read(kind.errors);
  const std::uint64_t begun = read(kind.begun);
  out.in_flight = begun > out.calls ? begun - out.calls : 0;
  out.bytes_in = read(kind.bytes_in);
  out.bytes_out = read(kind.bytes_out);
  return out;
}

TableCounts Metrics::table(std::uint32_t id) const noexcept {
  const auto found = tables_.find(id);
  return found == tables_.end() ? TableCounts{}
                                : TableCounts{read(found->second.pulled), read(found->second.pushed)};
}

}  // namespace fleetrun::ps
