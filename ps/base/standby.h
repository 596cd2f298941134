// A server's standby: another server's process that has its state too, and follows its log
// (ps/server/server_standby.cc and server_held.cc).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ps/base/server_channel.h"

namespace fleetrun::ps {

struct StandbyOptions {
  /// Connects to the server that holds it. Gives up soon when the flag is set. Throws: Error(network) where
  /// nobody answers. Empty: there is no standby.
  std::function<std::unique_ptr<Channel>(const std::atomic<bool>& give_up)> connect = {};
  /// How messages call that server, now.
  std::function<std::string()> name = {};
  /// Another number when that server is another, or somewhere else, from then on: the connection is of no use
  /// any more. Empty: it stays where it is.
  std::function<std::uint64_t()> moves = {};
  /// After how long without a change the connection is tried.
  std::chrono::milliseconds idle{500};
};

/// A request `follow`: text or bytes come after it. `number` and `count`:
struct FollowHead {
  enum What : std::uint32_t {
    begin = 1,    // the generation of the server's process, the pieces that follow | owner text
    piece = 2,    // which, its digest | its bytes
    records = 3,  // the number of the first, how many | as ps/durable/log_feed.h has them
    guard = 4,    // from here on no answer is given before the standby has what it promises
    drop = 5,     // what was followed so far is not to be handed back
  };
  std::uint32_t rank = 0;
  std::uint32_t what = 0;
  std::uint64_t stream = 0;
  std::uint64_t number = 0;
  std::uint64_t count = 0;
};

/// A request `hand_back`. ask: the state, if it is there, and claim: nothing of it, which is dropped. Either
/// makes who asks the owner, and is answered by a HandedBack; an earlier process of that server is refused
/// from then on. piece: answered by its digest u64 and its bytes.
struct HandBack {
  enum What : std::uint32_t { ask = 1, claim = 2, piece = 3 };  // ask and claim: | owner text
  std::uint32_t rank = 0;
  std::uint32_t what = 0;
  std::uint64_t stream = 0;
  std::uint64_t piece_number = 0;
};
struct HandedBack {
  std::uint64_t generation = 0;
  std::uint64_t stream = 0;  // on which the standby is followed from here on; 0: it has no state
  std::uint64_t pieces = 0;
  std::uint64_t records = 0;  // that it has followed
};

}  // namespace fleetrun::ps
