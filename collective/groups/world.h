// All ranks of a job, and the groups that they form: what code above uses to come by communicators.
//
//   join        every rank connects to the job's store, which rank 0 serves
//               (collective/store/tcp_store.h), and says where it is
//   communicate make_communicator() connects a group: by shared memory where all
//               of it is on one host, else by Gloo, or in two levels
//   lose        a rank whose process ends without leaving is known to all others within a second; the
//               communicators that it is in fail with an Error that names it
//   go on       survivors(): the ranks that are left form a new group, renumbered in the order of their old
//               ranks. Not without rank 0, which has the store: then the job is started again
//
// Groups are told apart by their names: no name is used twice in a world.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/base/communicator.h"
#include "collective/base/grouping.h"
#include "collective/base/time_limit.h"
#include "runtime/connect/access.h"

namespace fleetrun {
class Environ;
}

namespace fleetrun::collective {

class Store;

struct WorldOptions {
  int rank = 0;
  int size = 1;
  /// "host:port" where rank 0 serves the job's store; not needed by a world of one.
  std::string store = {};
  /// The port of `store` is held for rank 0 by a socket that does not listen (FLEETRUN_LISTEN).
  bool shares_port = false;
  Access access = {};
  /// Where the other hosts reach this process; empty: the address from which it reaches the store.
  std::string address = {};
  /// Equal for ranks that can share memory. Empty: this boot of the host,
  /// its network namespace, and the user.
  std::string host_key = {};
  /// Names this start of the job ("run 7f3a…, attempt 1"): ranks of different ones do not meet.
  std::string attempt = {};
  Transport transport = Transport::automatic;
  /// For all ranks to come, here and when a communicator is made.
  std::chrono::milliseconds meet_within{std::chrono::minutes(5)};
  /// For a call, from the moment in which this rank makes it.
  std::chrono::milliseconds call_within{std::chrono::minutes(30)};
  /// Asked while ranks meet, here and when a communicator is made: throws where one of them will not come.
  std::function<void()> concern = {};
};

struct CommunicatorOptions {
  /// Nothing: as the world's way says. true: reduce within each inner group, all-reduce among their first
  /// ranks, broadcast within (collective/cpu/hierarchical_communicator.h). false: all ranks alike.
  std::optional<bool> hierarchical = {};
  /// Consecutive ranks that form an inner group; 0: the ranks of a host do.
  int inner_size = 0;
  std::optional<Transport> transport = {};  // another one than the world's
  std::optional<TimeLimit> call_within = {};
  /// For its ranks to come; nothing: the shorter one of the world's time and `call_within`.
  std::optional<std::chrono::milliseconds> meet_within = {};
};

/// What it takes to connect a group in a way that World does not know: between GPUs (collective/nccl/gpu.h).
struct GroupRendezvous {
  Place place;
  Store& store;        // lives as long as the communicator
  std::string prefix;  // of the group's own names in the store
  /// Where it is to work in two levels: its inner groups; else empty.
  std::vector<std::vector<int>> inner_groups;
  std::chrono::milliseconds meet_within;
  TimeLimit call_within;
};
using Connect = std::function<std::unique_ptr<Communicator>(const GroupRendezvous&)>;

/// Threads: any; the communicators have their own rules.
class World {
 public:
  /// Meets the other ranks.
  /// Throws: Error(timeout) naming the ranks that did not come, Error(config) where two say different things
  /// (secret, size, attempt, a rank twice), Error(network) where the store cannot be reached or served.
  static std::unique_ptr<World> join(WorldOptions options);
  /// Leaves the job: that this process ends then is not a failure. Communicators are destroyed before.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const noexcept;
  int size() const noexcept;
  /// The host key of every rank, by rank.
  const std::vector<std::string>& hosts() const noexcept;
  /// For what else ranks have to tell each other. Names that begin with "world/" are this class's.
  Store& store() noexcept;

  /// A communicator of `ranks` (empty: all), which become its ranks 0, 1, … in this order. All of them call
  /// it, and nobody else. Throws: as join(); Error(config) where this rank is not among them,
  /// or they disagree.
  std::unique_ptr<Communicator> make_communicator(const std::string& name, const std::vector<int>& ranks = {},
                                                  const CommunicatorOptions& options = {});
  /// The same with a communicator that `connect` makes. It is aborted when one of its ranks is lost; what
  /// else fails it tells its ranks itself. Throws: as above, and what `connect` does, on all ranks.
  std::unique_ptr<Communicator> make_communicator(const std::string& name, const std::vector<int>& ranks,
                                                  const CommunicatorOptions& options, const Connect& connect);

  /// Fails the groups whose names begin with this, on all ranks that can still be reached: those that there
  /// are, and those that ranks meet for, now or later. Does not wait.
  void fail(const std::string& prefix, const Error& why);
  /// Ranks whose processes have ended without leaving, so far; ascending.
  std::vector<int> lost() const;
  /// Waits for all ranks that are left to call it with this name, and makes a communicator of them.
  /// Throws: as make_communicator(); Error(network) where rank 0 is lost.
  std::unique_ptr<Communicator> survivors(const std::string& name, const CommunicatorOptions& options = {});

 private:
  struct State;
  /// A group of these ranks may be made: where this rank stands in it. Throws: Error(config).
  Place admit(const std::string& name, std::vector<int>& ranks, const CommunicatorOptions& options);
  explicit World(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // also held by the communicators' watch of lost ranks
};

/// What the environment says: of fleetrun and Paddle's launcher (PADDLE_TRAINER_ID, PADDLE_TRAINER_ENDPOINTS,
/// …), else of torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), else a world of one. And
/// FLEETRUN_COLLECTIVE (auto, shm or gloo), FLEETRUN_COLLECTIVE_TIMEOUT (seconds of a call),
/// FLEETRUN_MEET_TIMEOUT (seconds).
/// Throws: Error(config) that names the variable that is missing or makes no sense.
WorldOptions world_options_from(const Environ& environ);

}  // namespace fleetrun::collective
