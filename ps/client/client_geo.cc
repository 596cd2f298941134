// Geo mode: asking servers for the rows that other trainers have changed.
#include <algorithm>

#include "ps/client/channel_client_state.h"

namespace fleetrun::ps {

namespace {

/// Floats of one answer, about: a server makes it in one piece.
constexpr std::size_t kFloatsOfAnswer = std::size_t{4} << 20;

}  // namespace

TouchedRows ChannelClient::pull_touched() {
  const std::lock_guard lock(touched_mutex_);
  std::size_t widest = 1;
  for (const TableConfig& config : options_.tables) {
    if (config.kind == TableConfig::Kind::sparse) widest = std::max<std::size_t>(widest, config.width);
  }
  const std::uint64_t max = std::max<std::size_t>(1, kFloatsOfAnswer / widest);
  const std::uint64_t number = ++touched_asked_;
  TouchedRows out;
  generations_.resize(servers(), 0);
  const wire::Header head = header(wire::Method::pull_touched);
  const auto make = [&](std::uint32_t) {
    wire::Draft draft = wire::draft(head, sizeof number + sizeof max);
    draft.writer.value(number);
    draft.writer.value(max);
    return std::move(draft.message);
  };
  try {
    ask_all(head, make, [&](std::uint32_t server, Reader answer) { read_touched(server, answer, out); });
  } catch (...) {
    // Keys of an answer that was dropped here are not named again.
    generations_.clear();
    throw;
  }
  return out;
}

void ChannelClient::read_touched(std::uint32_t server, Reader& answer, TouchedRows& out) {
  const auto generation = answer.value<std::uint64_t>();
  out.forgot = out.forgot || generation != generations_[server];
  generations_[server] = generation;
  out.more = answer.value<std::uint32_t>() != 0 || out.more;
  const auto tables = answer.value<std::uint32_t>();
  Message copy;
  const auto sections = answer.array<wire::Rows>(tables, copy);
  const std::size_t first = out.tables.size();
  for (const wire::Rows& rows : sections) {
    const TableConfig& config = table(rows.table, TableConfig::Kind::sparse);
    check_rows(config, pulled_width(config), rows.keys, rows.keys * rows.width);
    TouchedRows::Table& touched = out.tables.emplace_back();
    touched.table = rows.table;
    Message keys;
    const auto list = answer.array<std::uint64_t>(rows.keys, keys);
    touched.keys.assign(list.begin(), list.end());
  }
  for (std::size_t i = 0; i < sections.size(); ++i) {
    Message values;
    const auto list = answer.array<float>(sections[i].keys * sections[i].width, values);
    out.tables[first + i].rows.assign(list.begin(), list.end());
  }
  wire::expect_end(answer);
}

}  // namespace fleetrun::ps
