// The state of another server that this one holds: its tables and its barrier service, made from pieces and
// from the records of its log, exactly as a restart from a checkpoint would.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "ps/base/standby.h"
#include "ps/saving/part_loader.h"
#include "ps/server/server_state.h"

namespace fleetrun::ps {

struct Server::State::Held {
  std::mutex mutex;              // guards what follows
  std::uint64_t generation = 0;  // of the process that owns it
  std::string owner;
  std::uint64_t stream = 0;  // 0: nothing is followed
  std::unique_ptr<PartAssembler> coming;
  std::unique_ptr<State> replica;               // once all pieces are here
  std::uint64_t position = 0;                   // records of the stream so far
  std::uint64_t records = 0;                    // in all
  bool is_guarded = false;                      // only then it has all that was answered
  std::chrono::steady_clock::time_point heard;  // its owner's last word
  bool is_taken = false;                        // this host goes on with it: its own is lost
  std::unique_ptr<PartPieces> given;

  void drop() {
    stream = position = records = 0;
    is_guarded = false;
    coming.reset();
    replica.reset();
    given.reset();
  }
};

}  // namespace fleetrun::ps
