// What one server has done, counted while it works: calls of each kind with their bytes and times, keys of
// each table. Nothing here takes a lock; who reads sees numbers that may be a call apart from each other.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ps/base/outcome.h"
#include "ps/base/table_config.h"
#include "ps/base/wire.h"
#include "ps/watch/histogram.h"

namespace fleetrun::ps {

/// Calls of one kind. `in_flight`: begun and not answered; in sync mode a push waits there for its step.
struct CallCounts {
  std::uint64_t calls = 0;  // answered
  std::uint64_t errors = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  HistogramCounts nanoseconds;
};

/// Keys (of a dense table: calls) that pulls and pushes brought.
struct TableCounts {
  std::uint64_t pulled = 0;
  std::uint64_t pushed = 0;
};

/// Threads: all calls may be made from several threads at once.
class Metrics {
 public:
  explicit Metrics(const std::vector<TableConfig>& tables);

  /// A call has come in. Returns `respond` with the counting of the answer around it.
  static Respond count(const std::shared_ptr<Metrics>& metrics, wire::Method method, std::size_t bytes,
                       Respond respond);
  void pulled(const wire::Sections& sections) noexcept;
  void pushed(const wire::Sections& sections) noexcept;

  CallCounts calls(wire::Method method) const;
  TableCounts table(std::uint32_t id) const noexcept;
  std::chrono::steady_clock::time_point began_at() const noexcept { return began_; }

 private:
  struct Kind {
    std::atomic<std::uint64_t> begun{0}, errors{0}, bytes_in{0}, bytes_out{0};
    Histogram nanoseconds;
  };
  struct Table {
    std::atomic<std::uint64_t> pulled{0}, pushed{0};
  };

  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::array<Kind, wire::kMethodCount> kinds_;
  std::map<std::uint32_t, Table> tables_;  // made once, then only counted in
};

}  // namespace fleetrun::ps
