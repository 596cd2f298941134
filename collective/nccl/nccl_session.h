// One NCCL communicator with its stream, its calls under way and the thread that watches over them; for
// nccl_communicator.cc and nccl_hierarchy.cc alone.
// collective/nccl/nccl_communicator.h says what it promises.
//
//   meet   the ranks come together on the board (collective/base/call_board.h), get NCCL's unique id from
//          rank 0, and make the communicator, non-blocking
//   start  caller's stream ──event──▶ own stream: [what the ranks call, gathered]
//          [the call, one NCCL group] ──▶ `done`
//   watch  while calls are under way: are their events past, did the ranks call the same, has NCCL an
//          error, has somebody ended it, is the first one late
//   fail   the first error stays. The watching thread stops what runs on the GPU (ncclCommRevoke where
//          NCCL has it, so that the survivors can shrink the communicator;
//          else ncclCommAbort) and tells the other ranks
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "collective/base/call_board.h"
#include "collective/nccl/device.h"
#include "collective/nccl/nccl_calls.h"
#include "collective/nccl/nccl_communicator.h"

namespace fleetrun::collective {

/// A group of calls under way.
struct NcclCall {
  enum class State { running, ended, failed };

  explicit NcclCall(const CudaRuntime& cuda) : tags_are_here(cuda), done(cuda) {}

  std::string what;                 // for messages
  std::optional<int> peer;          // of a send or receive
  std::uint64_t number = 0;         // of the collective calls before it
  std::optional<std::size_t> slot;  // where the ranks' tags are, when they are compared
  CallTag tag;                      // this rank's
  Event tags_are_here, done;
  std::atomic<bool> has_sent_tags = false, is_launched = false;  // their events were recorded
  Store::Clock::time_point began;
  // Under the session's mutex:
  State state = State::running;
  bool is_compared = false;
};

class NcclSession {
 public:
  using Clock = Store::Clock;
  /// The communicator that the ranks but `lost` (ascending) had.
  struct Parent {
    NcclSession& session;
    std::vector<int> lost;
  };

  NcclSession(const GpuLibraries& libraries, Place place, Store& store, std::string prefix,
              NcclOptions options, std::optional<Parent> parent);
  ~NcclSession();
  NcclSession(const NcclSession&) = delete;
  NcclSession& operator=(const NcclSession&) = delete;

  const Place& place() const noexcept { return place_; }
  const NcclOptions& options() const noexcept { return options_; }
  const std::string& prefix() const noexcept { return prefix_; }
  Store& store() const noexcept { return store_; }
  const GpuLibraries& libraries() const noexcept { return libraries_; }
  std::shared_ptr<Stream> stream() const { return stream_; }

  struct Part {
    NcclSession* session;
    std::span<const Call> calls;
  };
  /// All parts as one NCCL group. Throws: as Communicator::start().
  static std::vector<std::shared_ptr<NcclCall>> start(std::span<const Part> parts);

  /// Throws: the communicator's Error.
  void wait(NcclCall& call);
  bool has_ended(NcclCall& call) noexcept;
  void fail(const Error& why) noexcept;
  /// What is added to `stream` from now on comes after the call.
  void hold(const NcclCall& call, cudaStream_t stream) const;

 private:
  // nccl_session.cc
  void make_communicator(Clock::time_point deadline);
  /// Once what was under way is stopped.
  bool can_be_shrunk(Clock::time_point deadline);
  void shrink_from(const Parent& parent, Clock::time_point deadline);
  /// Returns when NCCL has done what it was asked for.
  /// Throws: its error; the session's when it failed meanwhile.
  void settle(std::optional<Clock::time_point> deadline);
  std::shared_ptr<NcclCall> begin(std::span<const Call> calls);
  void send_tags(NcclCall& call);
  void receive_tags(NcclCall& call);
  void add(const Call& call);
  const void* input_apart(const Call& call);
  void close() noexcept;
  NcclTarget target() const;

  // nccl_watch.cc; `lock` is held at the beginning and the end
  using Lock = std::unique_lock<std::mutex>;
  void watch() noexcept;
  void look(Lock& lock);
  void look_at_board(Lock& lock);
  void look_at_nccl(Lock& lock);
  void give_up_on_first(Lock& lock);
  void stop(Lock& lock);
  /// Forgets the calls that have ended, in their order.
  void sweep(const Lock&);
  /// The call's end, once its event has passed.
  void conclude(NcclCall& call, const Lock&);
  void compare_tags(NcclCall& call, const Lock&);
  void fail(const Error& why, const Lock&) noexcept;
  void throw_failure(const Lock&) const;

  const GpuLibraries& libraries_;
  const Place place_;
  Store& store_;
  const std::string prefix_;
  const NcclOptions options_;
  CallBoard board_;
  std::shared_ptr<Stream> stream_;  // of this, and of the sessions whose calls come after each other with it
  std::optional<GpuMemory> tags_out_, tags_in_, host_tags_out_, host_tags_in_, word_;
  std::optional<GpuMemory> scratch_;  // for all_to_all in place
  std::size_t scratch_bytes_ = 0;

  std::mutex library_;  // of the communicator's handle: one thread at a time asks NCCL something
  ncclComm_t communicator_ = nullptr;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::shared_ptr<NcclCall>> under_way_;
  std::uint64_t begun_ = 0, collectives_ = 0, published_ = 0;
  Clock::time_point looked_at_board_ = {};
  Clock::time_point first_since_ = {};  // when the first call under way had nothing before it any more
  std::optional<Error> failure_;
  bool is_from_board_ = false;  // the failure: the others know
  bool is_stopped_ = false, is_closing_ = false, is_store_lost_ = false;
  std::thread watcher_;
};

}  // namespace fleetrun::collective
