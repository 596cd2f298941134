// A group of ranks that call collectives together. collective/cpu
// and collective/nccl implement it; code above knows nothing else.
//
// There is no global state: a process may have as many communicators as it likes, with other ranks of other
// sizes. Of one communicator all ranks make the same calls in the same order; every call finds out when they
// do not, and says which rank asked for what (collective/base/call.h: CallTag).
//
// A communicator fails once and for all: a peer that died, a deadline that passed, calls that differ,
// abort(). The call under way and all later ones throw that error on every rank that is left, which then
// makes a new communicator of the survivors (collective/groups/world.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "collective/base/call.h"
#include "runtime/base/error.h"

namespace fleetrun::collective {

/// Where this process stands in a communicator.
struct Place {
  std::string group;  // its name, for messages: "world"
  int rank = 0;
  int size = 1;
};

/// How long a rank whose peer has gone waits to be told what happened,
/// since who watches the job's processes knows.
inline constexpr std::chrono::milliseconds kForTheCause{700};

/// A call that was started. Destroying it waits for the call's end and drops its error.
class Work {
 public:
  virtual ~Work() = default;
  virtual bool has_ended() const noexcept = 0;
  /// Returns when this rank's part is done: its output is complete and its input may change.
  /// Throws: the communicator's Error.
  virtual void wait() = 0;
};

/// Threads: run() and start() by one thread at a time; abort() by any.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual const Place& place() const noexcept = 0;
  /// Makes the call, after those that were started.
  /// Throws: Error(config) for arguments that cannot be (check()) and where ranks disagree, Error(network)
  /// naming a rank that died, Error(timeout) naming one that did not come, and what abort() was given.
  virtual void run(const Call& call) = 0;
  /// Makes the call beside the caller; calls run in the order in which they were started. The buffers stay
  /// the call's until it has ended. Throws: Error(config) as run() does for arguments.
  virtual std::unique_ptr<Work> start(const Call& call) = 0;
  /// Ends the communicator on all ranks that can still be reached.
  /// `why` is what waiting calls throw. Does not wait.
  virtual void abort(const Error& why) noexcept = 0;
};

// ---- The calls by name. `count` is in elements; shapes as collective/base/call.h says. ----

/// Typed views of buffers: elements of any type that DataType has, or bytes of a type named at run time.
struct ConstBuffer {
  const void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::float32;
};
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::float32;
};

void all_reduce(Communicator& communicator, ConstBuffer input, Buffer output, Operation operation);
/// In place.
void all_reduce(Communicator& communicator, Buffer values, Operation operation);
void broadcast(Communicator& communicator, Buffer values, int root);
/// `output` is read at the root only.
void reduce(Communicator& communicator, ConstBuffer input, Buffer output, Operation operation, int root);
/// Every rank's input has input.count elements; output.count is that times the ranks.
void all_gather(Communicator& communicator, ConstBuffer input, Buffer output);
/// Rank r's input has counts[r] elements, which all ranks pass.
void all_gather(Communicator& communicator, ConstBuffer input, Buffer output,
                std::span<const std::size_t> counts);
void reduce_scatter(Communicator& communicator, ConstBuffer input, Buffer output, Operation operation);
void reduce_scatter(Communicator& communicator, ConstBuffer input, Buffer output, Operation operation,
                    std::span<const std::size_t> counts);
void all_to_all(Communicator& communicator, ConstBuffer input, Buffer output);
void all_to_all(Communicator& communicator, ConstBuffer input, std::span<const std::size_t> send_counts,
                Buffer output, std::span<const std::size_t> counts);
void send(Communicator& communicator, ConstBuffer values, int to);
void receive(Communicator& communicator, Buffer values, int from);
void barrier(Communicator& communicator);

}  // namespace fleetrun::collective
