// All tables of one server, and what a request may ask of them. A request is checked as a whole before
// anything is changed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ps/base/message.h"
#include "ps/base/table_config.h"
#include "ps/base/wire.h"
#include "ps/table/change_marks.h"
#include "ps/table/dense_table.h"
#include "ps/table/sparse_table.h"
#include "ps/table/table_memory.h"

namespace fleetrun::ps {

/// Where a server stands among all of them, and what it has for its tables.
struct ServerPlace {
  std::uint32_t rank = 0;
  std::uint32_t servers = 1;
  TableMemory memory = {};
  RowClock clock = seconds_now;
};

/// Threads: all calls may be made from several threads at once.
class TableSet {
 public:
  TableSet(const std::vector<TableConfig>& tables, ServerPlace place);

  /// Throw: Error(config) for an id that is not there or of the other kind, naming it.
  SparseTable& sparse(std::uint32_t id) const;
  DenseTable& dense(std::uint32_t id) const;

  /// The reply to a pull. Throws: Error(config) naming the table when the request and it disagree, or when a
  /// dense table has no values yet.
  Message pull(const wire::PullRequest& request, const MessageSource& source = {}) const;
  /// Throws: as pull, and Error(data) for a gradient that is not a finite number. Brings the rows that are
  /// cold into memory, so that the disk's troubles are told here.
  void check(const wire::PushRequest& request) const;
  /// Whether serving these keys would make a row that stays in memory. Throws: Error(config) as sparse().
  bool lacks_rows(const wire::Sections& sections,
                  const std::vector<std::span<const std::uint64_t>>& keys) const;
  /// Applies a push that check() has passed. Throws: Error(host) when the disk fails;
  /// nothing has changed then.
  void apply(const wire::PushRequest& request);
  /// The same request with rows instead of gradients: SparseTable::assign.
  void assign(const wire::PushRequest& request);
  /// Makes room, and keeps rows that are in memory there as long as the result lives.
  MemoryBudget::Stay stay() const;
  /// The tables that are clipped to a norm, in the order of their ids.
  const std::vector<TableConfig>& clipped_to_norm() const noexcept { return to_norm_; }
  bool has_clips() const noexcept { return has_clips_; }
  /// Whether there are other servers, which have the other parts of tables.
  bool is_part() const noexcept { return place_.servers > 1; }
  /// First values of this server's block of a dense table.
  void set_dense(const wire::Floats& block, std::span<const float> values);
  /// Ends a day of a table. Returns how many rows went.
  std::uint64_t shrink(std::uint32_t id, unsigned threads);
  ChangeMarks& marks() noexcept { return marks_; }

 private:
  void check(const wire::Sections& sections, bool is_pull) const;
  void make_room() const;
  void warm(const wire::PushRequest& request) const;

  ServerPlace place_;
  std::vector<TableConfig> to_norm_;
  bool has_clips_ = false;
  ChangeMarks marks_;
  std::map<std::uint32_t, std::unique_ptr<SparseTable>> sparse_;
  std::map<std::uint32_t, std::unique_ptr<DenseTable>> dense_;
};

/// The statistics that come with a sparse section of a push.
PushStatistics statistics_of(const wire::PushRequest& request, std::size_t section);

}  // namespace fleetrun::ps
