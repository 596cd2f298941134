// What the ranks of a communicator tell each other through the job's store, beside the calls that they make:
// that they are there, how many calls each has begun, and that it is over. It is for communicators whose
// library cannot say which rank did not come (collective/nccl).
//
// Cost: two operations of the store for a rank that comes, one each time it publishes how far it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collective/base/communicator.h"
#include "collective/store/store.h"

namespace fleetrun::collective {

/// Threads: any.
class CallBoard {
 public:
  using Clock = Store::Clock;

  struct Behind {
    int rank = 0;
    std::uint64_t calls = 0;  // that it has begun
  };

  /// `prefix` is the names' beginning in the store, this communicator's own.
  CallBoard(Store& store, std::string prefix, Place place);

  /// Says that this rank is there, and returns when all are. `agreement` is what all of them have to say
  /// alike. Throws: Error(timeout) naming the ranks that did not come,
  /// Error(config) naming one that says another thing.
  void meet(const std::string& agreement, Clock::time_point deadline);
  /// A value of rank 0's that the others wait for; `value` is empty elsewhere.
  std::string share(const std::string& name, const std::string& value, Clock::time_point deadline);

  /// This rank has begun `calls` calls.
  void publish(std::uint64_t calls);
  /// The ranks that have published fewer than `calls`.
  std::vector<Behind> behind(std::uint64_t calls);

  /// Ends it for all ranks, with this reason, unless one did before.
  void abort(const Error& why);
  /// The reason, once a rank has ended it.
  std::optional<Error> aborted();

 private:
  std::string name(const std::string& of) const { return prefix_ + "/" + of; }

  Store& store_;
  const std::string prefix_;
  const Place place_;
  std::mutex mutex_;  // of what follows
  std::uint64_t published_ = 0;
};

/// "rank 2 (it has made 6 calls) and rank 3 (7)", for messages; ranks beyond the first eight are counted.
std::string to_string(const std::vector<CallBoard::Behind>& behind);

}  // namespace fleetrun::collective
