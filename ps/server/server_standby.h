// A server's side of having a standby, and what both sides make of a state.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ps/base/standby.h"
#include "ps/durable/checkpoint.h"
#include "ps/durable/log_feed.h"
#include "ps/saving/part_writer.h"
#include "ps/saving/table_cut.h"
#include "ps/server/server.h"

namespace fleetrun::ps {

inline constexpr const char* kStateName = "server";

/// A server at one moment: between changes, and between events of its barrier service.
struct Moment {
  KeptState kept;
  TableCut cut;
  std::uint64_t changes = 0;  // ChangeMarks::number()
};
inline std::vector<NamedBytes> named_state(const KeptState& kept) {
  return {{kStateName, to_bytes(kept)}};
}
/// What must be the same before and after: one line per thing, so that an error can show which is not.
std::string describe(const ServerOptions& options);
/// By which a state is known: the run of the process that asks, and the server.
inline std::string owner_text(const ServerOptions& here, const ServerOptions& whose) {
  return here.durability.run + "\n" + describe(whose);
}
inline ServerPlace place_of(const ServerOptions& options) {
  return {options.rank, options.servers, options.memory, options.clock};
}

/// What a server that has a standby keeps of that.
struct Following {
  LogFeed feed;
  std::atomic<std::uint64_t> generation{0};  // 0: not known yet
  std::uint64_t stream = 0;                  // 0: none; of the thread, before it that of recover()
  std::atomic<bool> begins_anew{false};      // its tables have become others than the log says: so must those
  std::atomic<bool> ending{false};
  std::function<std::uint64_t()> moves;  // StandbyOptions; of the thread, as the next
  std::uint64_t moves_then = 0;          // when its standby was looked for
  std::mutex mutex;
  bool is_left = false;             // guarded by it: the server is about to be another process's
  std::condition_variable changed;  // begins_anew has been heard
  std::thread thread;

  /// Its thread ends soon.
  void end() {
    ending = true;
    feed.wake();
    const std::lock_guard lock(mutex);
    changed.notify_all();
  }

  void look_where(const StandbyOptions& standby) {
    moves = standby.moves;
    moves_then = moves ? moves() : 0;
  }
  bool has_moved() const { return moves && moves() != moves_then; }
};

}  // namespace fleetrun::ps
