#include "ps/table/table_set.h"

#include <algorithm>
#include <string>

#include "ps/base/key_partition.h"
#include "ps/table/push_values.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

std::string quoted(const TableConfig& config) {
  return "table '" + config.name + "'";
}

void check_has_values(const DenseTable& table) {
  if (table.has_values()) return;
  throw Error(ErrorKind::config, quoted(table.config()) + " has no values yet",
              "one trainer sets them (set_dense) or loads them before others use the table");
}

}  // namespace

PushStatistics statistics_of(const wire::PushRequest& request, std::size_t section) {
  if (section >= request.shows.size()) return {};
  return {request.shows[section], request.clicks[section],
          static_cast<std::uint16_t>(request.sections.sparse[section].slot)};
}

TableSet::TableSet(const std::vector<TableConfig>& tables, ServerPlace place) : place_(place) {
  for (const TableConfig& config : tables) {
    has_clips_ = has_clips_ || config.clip.kind != Clip::Kind::none;
    if (config.clip.is_norm()) to_norm_.push_back(config);
    if (config.kind == TableConfig::Kind::sparse) {
      auto table = std::make_unique<SparseTable>(config, place.clock);
      if (config.on_disk && place.memory.cold) {
        table->attach(place.memory.cold->open(config, table->row_floats()), *place.memory.budget);
      }
      sparse_.emplace(config.id, std::move(table));
    } else {
      const Block block = dense_block(config, place.servers, place.rank);
      dense_.emplace(config.id, std::make_unique<DenseTable>(config, block.size()));
    }
  }
  std::ranges::sort(to_norm_, {}, &TableConfig::id);
}

SparseTable& TableSet::sparse(std::uint32_t id) const {
  if (const auto found = sparse_.find(id); found != sparse_.end()) return *found->second;
  throw Error(ErrorKind::config, dense_.contains(id) ? "table " + std::to_string(id) + " is dense, not sparse"
                                                     : "there is no table " + std::to_string(id));
}

DenseTable& TableSet::dense(std::uint32_t id) const {
  if (const auto found = dense_.find(id); found != dense_.end()) return *found->second;
  throw Error(ErrorKind::config, sparse_.contains(id)
                                     ? "table " + std::to_string(id) + " is sparse, not dense"
                                     : "there is no table " + std::to_string(id));
}

void TableSet::check(const wire::Sections& sections, bool is_pull) const {
  for (const wire::Rows& rows : sections.sparse) {
    const TableConfig& config = sparse(rows.table).config();
    const std::uint64_t width = is_pull ? pulled_width(config) : config.width;
    if (rows.width == width) continue;
    throw Error(ErrorKind::config, quoted(config) + " has rows of width " + std::to_string(width) +
                                       ", the request says " + std::to_string(rows.width));
  }
  for (const wire::Floats& block : sections.dense) {
    const DenseTable& table = dense(block.table);
    check_has_values(table);
    if (block.floats == table.size()) continue;
    throw Error(ErrorKind::config, quoted(table.config()) + " has " + std::to_string(table.size()) +
                                       " values on server " + std::to_string(place_.rank) +
                                       ", the request says " + std::to_string(block.floats));
  }
}

Message TableSet::pull(const wire::PullRequest& request, const MessageSource& source) const {
  check(request.sections, true);
  std::size_t floats = 0;
  std::size_t bytes = 0;
  for (const wire::Rows& rows : request.sections.sparse) {
    floats += rows.keys * rows.width;
    bytes += rows.bytes();
  }
  for (const wire::Floats& block : request.sections.dense) {
    floats += block.floats;
    bytes += block.floats * sizeof(float);
  }
  if (floats > wire::kLongestMessage / sizeof(float)) {
    throw Error(ErrorKind::data,
                "a pull asks for " + std::to_string(floats) + " values; at most " +
                    std::to_string(wire::kLongestMessage / sizeof(float)) + " fit into one answer",
                "use a smaller batch, or more servers");
  }
  make_room();
  Message reply = source ? source(bytes) : Message(bytes);
  Writer writer(reply);
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    const wire::Rows& rows = request.sections.sparse[i];
    const bool is_plain = rows.encoding() == Encoding::float32;
    std::vector<float> plain(is_plain ? 0 : rows.keys * rows.width);
    float* values = is_plain ? writer.room<float>(rows.keys * rows.width).data() : plain.data();
    sparse(rows.table).pull(request.keys[i], values, !rows.has(wire::kNoNewRows));
    if (!is_plain) wire::encode_rows(rows, plain, writer.room<std::byte>(rows.bytes()).data());
  }
  for (const wire::Floats& block : request.sections.dense) {
    dense(block.table).pull(writer.room<float>(block.floats));
  }
  return reply;
}

bool TableSet::lacks_rows(const wire::Sections& sections,
                          const std::vector<std::span<const std::uint64_t>>& keys) const {
  bool lacks = false;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const wire::Rows& rows = sections.sparse[i];
    SparseTable& table = sparse(rows.table);
    if (rows.has(wire::kNoNewRows) || table.config().on_disk) continue;
    table.look(keys[i], [&lacks](std::size_t, std::span<const float> row) { lacks = lacks || row.empty(); });
  }
  return lacks;
}

void TableSet::check(const wire::PushRequest& request) const {
  check(request.sections, false);
  for (std::size_t i = 0; i < request.gradients.size(); ++i) {
    const TableConfig& config = sparse(request.sections.sparse[i].table).config();
    check_gradients(config, request.gradients[i], "applied");
    const PushStatistics counts = statistics_of(request, i);
    check_counts(config, counts.shows, counts.clicks, "applied");
  }
  for (std::size_t i = 0; i < request.dense.size(); ++i) {
    check_gradients(dense(request.sections.dense[i].table).config(), request.dense[i], "applied");
  }
  make_room();
  warm(request);
}

void TableSet::make_room() const {
  if (place_.memory.budget) place_.memory.budget->make_room();
}

MemoryBudget::Stay TableSet::stay() const {
  if (!place_.memory.budget) return {};
  make_room();
  return place_.memory.budget->stay();
}

void TableSet::warm(const wire::PushRequest& request) const {
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    sparse(request.sections.sparse[i].table).warm(request.keys[i]);
  }
}

void TableSet::apply(const wire::PushRequest& request) {
  marks_.note_change();
  const MemoryBudget::Stay staying = stay();
  warm(request);
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    sparse(request.sections.sparse[i].table)
        .push(request.keys[i], request.gradients[i].data(), statistics_of(request, i), request.rate);
  }
  for (std::size_t i = 0; i < request.dense.size(); ++i) {
    dense(request.sections.dense[i].table).push(request.dense[i], request.rate);
  }
}

void TableSet::assign(const wire::PushRequest& request) {
  marks_.note_change();
  const MemoryBudget::Stay staying = stay();
  warm(request);
  for (std::size_t i = 0; i < request.keys.size(); ++i)
    sparse(request.sections.sparse[i].table).assign(request.keys[i], request.gradients[i].data());
}

void TableSet::set_dense(const wire::Floats& block, std::span<const float> values) {
  DenseTable& table = dense(block.table);
  if (block.floats != table.size()) {
    throw Error(ErrorKind::config, quoted(table.config()) + " has " + std::to_string(table.size()) +
                                       " values on server " + std::to_string(place_.rank) +
                                       ", set_dense brings " + std::to_string(block.floats));
  }
  marks_.note_change();
  table.set(values);
}

std::uint64_t TableSet::shrink(std::uint32_t id, unsigned threads) {
  SparseTable& table = sparse(id);
  marks_.note_change();
  return table.shrink(threads);
}

}  // namespace fleetrun::ps
