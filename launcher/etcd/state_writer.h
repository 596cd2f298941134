// Stores what a leader publishes, under its fence: each write is a transaction that holds only while the
// coordinator's key is the one that this leader created, and the state is the one that it knew. A write that
// reaches etcd late, or twice, changes nothing.
//
// The state has a lease of its own, which the writer keeps: after the last leader it stays for that time, so
// that a successor finds it, and is gone by itself after a job whose launchers were all killed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/etcd/etcd_client.h"

namespace fleetrun::launcher {

struct JobKeys {
  std::string coordinator, state;
};

/// /fleetrun/JOB/coordinator and /fleetrun/JOB/state: the only keys of etcd that fleetrun touches.
JobKeys job_keys(std::string_view job_id);

struct StateOutcome {
  enum class Kind { stored, deposed, refused } kind = Kind::stored;
  EtcdFailure failure{};  // of Kind::refused
};

class StateWriter {
 public:
  virtual ~StateWriter() = default;
  /// One at a time: the next one after its outcome. As long as etcd is not there, it is tried.
  virtual void write(const std::string& state, std::function<void(const StateOutcome&)> done) = 0;
};

/// `found`: the state at the election; it is stored again under the writer's own lease, as soon as nothing
/// else is. `client` has to outlive it.
std::unique_ptr<StateWriter> make_state_writer(boost::asio::io_context& loop, EtcdClient& client,
                                               JobKeys keys, std::int64_t fence,
                                               std::optional<EtcdEntry> found,
                                               std::chrono::seconds time_to_live);

/// A number for a new lease, that nobody else draws.
std::int64_t draw_lease_id();

}  // namespace fleetrun::launcher
