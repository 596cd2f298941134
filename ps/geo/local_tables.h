// Geo mode: a trainer's own copy of all tables, and what it exchanges with the servers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <utility>
#include <vector>

#include "ps/client/step_client.h"
#include "ps/geo/local_rows.h"
#include "ps/table/table_set.h"

namespace fleetrun::ps {

/// Threads: pull and push may be called from several threads at once, beside one thread that calls exchange.
class LocalTables {
 public:
  /// `counts_steps`: what is sent says which steps it has, whole ones.
  LocalTables(const std::vector<TableConfig>& tables, bool counts_steps);

  /// Reads the copy; what it lacks is asked of `servers` first.
  void pull(const Pull& request, StepClient& servers);
  /// Applies the user's rule to the copy, at `rate` where it is scheduled; what it lacks is asked of
  /// `servers` first: it was pulled into another copy, or never. Throws: Error(data) for a gradient that is
  /// not a finite number; nothing has changed then.
  void push(const Push& request, float rate, StepClient& servers);
  void set_dense(std::uint32_t table, std::span<const float> values);
  /// rows[keys, width] that the servers have from now on, the trainer's as well where it holds them.
  void assign(std::uint32_t table, std::span<const std::uint64_t> keys, std::span<const float> rows);
  /// Bytes of the rows that were changed since the last exchange, about.
  std::size_t changed_bytes() const noexcept { return changed_bytes_; }
  /// Sends a share of what was changed, in one push, and takes over what others have changed.
  void exchange(float share, StepClient& servers);

 private:
  struct Dense {
    std::mutex mutex;  // guards what follows
    std::vector<float> server;
  };
  struct Summed;
  /// A share of what was changed, and the threads of the steps that it has, one each.
  struct Difference {
    std::vector<std::pair<std::uint32_t, LocalRows::Changes>> rows;
    std::vector<std::pair<std::uint32_t, std::vector<float>>> dense;
    std::vector<std::uint32_t> steps;
  };

  void fetch(std::span<const SparsePull> pulls, StepClient& servers);
  void fetch_dense(std::uint32_t table, StepClient& servers);
  Difference take(float share);
  void send(const Difference& difference, StepClient& servers) const;
  void receive_rows(StepClient& servers);
  void receive_dense(StepClient& servers);
  void check(std::uint32_t table, std::size_t keys, std::size_t floats) const;

  TableSet mine_;
  std::map<std::uint32_t, std::unique_ptr<LocalRows>> rows_;
  std::map<std::uint32_t, Dense> dense_;
  const bool counts_steps_;
  std::atomic<std::size_t> changed_bytes_{0};
  std::shared_mutex cut_;   // shared by steps that count, so that none is taken in part
  std::mutex steps_mutex_;  // guards what follows
  std::vector<std::uint32_t> steps_;
};

}  // namespace fleetrun::ps
