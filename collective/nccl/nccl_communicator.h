// A communicator between GPUs, over NCCL. Buffers are memory of its device;
// every rank has a device of its own.
//
// A call comes after what the caller's stream (Call::stream, else NcclOptions::caller_stream) has been given
// before, and runs on the communicator's own stream, so that the caller's goes on beside it: wait() for the
// host, NcclWork::hold() for a stream.
//
// What NCCL does not say, ranks find out beside it:
//   who did not come     before the communicator is made and when a call is late, through the job's store:
//                        each rank says there, at most once in `publish_every`, how many calls it has begun
//   calls that differ    each call is preceded by a gathering of 32 bytes a rank that say what it is
//                        (checks_calls); no host waits for it. NCCL itself hangs or mixes up memory
//   a rank that died     when NCCL sees it (ncclRemoteError), when the launcher or another communicator does
//                        and calls abort(), at the latest at the call's deadline
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "collective/base/communicator.h"
#include "collective/base/time_limit.h"
#include "collective/nccl/nccl_library.h"
#include "collective/store/store.h"

namespace fleetrun::collective {

class NcclSession;
class Stream;
struct NcclCall;

struct NcclOptions {
  /// Of this rank, as CUDA counts those that it sees.
  int device = 0;
  /// Which makes the inputs; nullptr: the legacy default stream.
  cudaStream_t caller_stream = nullptr;
  std::chrono::milliseconds meet_within{std::chrono::minutes(5)};
  /// For a call, from when it is the first that is under way.
  TimeLimit call_within{std::chrono::minutes(30)};
  bool checks_calls = true;
  std::chrono::milliseconds publish_every{std::chrono::seconds(1)};
  /// How often the calls under way are looked at: NCCL tells its errors only when asked.
  std::chrono::milliseconds look_every{10};
  /// Another communicator's (NcclCommunicator::stream()), of the same device:
  /// their calls then come after each other.
  std::shared_ptr<Stream> stream = {};
};

class NcclWork : public Work {
 public:
  NcclWork(std::shared_ptr<NcclSession> session, std::shared_ptr<NcclCall> call);
  ~NcclWork() override;
  bool has_ended() const noexcept override;
  void wait() override;
  /// What `stream` is given from now on comes after the call; the host goes on. A call that fails lets the
  /// stream go on, too: wait() says that it failed.
  void hold(cudaStream_t stream) const;

 private:
  std::shared_ptr<NcclSession> session_;  // also the communicator's, and of its other works
  std::shared_ptr<NcclCall> call_;        // also the session's, while it is under way
};

class NcclCommunicator : public Communicator {
 public:
  /// Meets the other ranks. `prefix` is its own in the store, the same on all ranks.
  /// Throws: Error(timeout) naming the ranks that did not come, Error(config) where they have different
  /// versions of NCCL or settings, Error(host) for a device that is not there,
  /// Error(network) with NCCL's words.
  NcclCommunicator(const GpuLibraries& libraries, Place place, Store& store, const std::string& prefix,
                   const NcclOptions& options);
  ~NcclCommunicator() override;

  const Place& place() const noexcept override;
  void run(const Call& call) override;
  std::unique_ptr<Work> start(const Call& call) override;
  void abort(const Error& why) noexcept override;

  /// Several calls as one group, which NCCL runs together:
  /// sends and receives that need each other, many small tensors.
  std::unique_ptr<NcclWork> start_group(std::span<const Call> calls);

  /// The communicator of the ranks but `lost`, which all of those call; this one is of no use then. By
  /// ncclCommShrink where NCCL has it and ncclCommRevoke, else made anew. Throws: as the constructor.
  std::unique_ptr<NcclCommunicator> shrink(std::vector<int> lost);

  std::shared_ptr<Stream> stream() const;

 private:
  explicit NcclCommunicator(std::shared_ptr<NcclSession> session);

  std::shared_ptr<NcclSession> session_;
};

}  // namespace fleetrun::collective
