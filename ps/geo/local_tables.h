// Geo mode: a trainer's own copy of all tables, and what it exchanges with the servers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ps/client/step_client.h"
#include "ps/geo/local_rows.h"
#include "ps/table/table_set.h"

namespace fleetrun::ps {

/// Threads: pull and push may be called from several threads at once, beside one thread that calls exchange.
class LocalTables {
 public:
  explicit LocalTables(const std::vector<TableConfig>& tables);

  /// Reads the copy; what it lacks is asked of `servers` first.
  void pull(const Pull& request, StepClient& servers);
  /// Applies the user's rule to the copy, at `rate` where it is scheduled. Throws: Error(data) for a gradient
  /// that is not a finite number; nothing has changed then.
  void push(const Push& request, float rate);
  void set_dense(std::uint32_t table, std::span<const float> values);
  /// rows[keys, width] that the servers have from now on, the trainer's as well where it holds them.
  void assign(std::uint32_t table, std::span<const std::uint64_t> keys, std::span<const float> rows);
  /// Sends a share of what was changed, and takes over what others have changed.
  void exchange(float share, StepClient& servers);

 private:
  struct Dense {
    std::mutex mutex;  // guards what follows
    std::vector<float> server;
  };
  struct Summed;

  void fetch(const Pull& request, StepClient& servers);
  void fetch_dense(std::uint32_t table, StepClient& servers);
  void send(float share, StepClient& servers);
  void send_rows(std::uint32_t table, const LocalRows::Changes& changes, StepClient& servers);
  void receive_rows(StepClient& servers);
  void receive_dense(StepClient& servers);
  void check(std::uint32_t table, std::size_t keys, std::size_t floats) const;

  TableSet mine_;
  std::map<std::uint32_t, std::unique_ptr<LocalRows>> rows_;
  std::map<std::uint32_t, Dense> dense_;
};

}  // namespace fleetrun::ps
