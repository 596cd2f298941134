// The way from a client to one server. ps/memory and ps/rpc implement it;
// ps/client/channel_client.h is written once over it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "ps/base/message.h"
#include "ps/base/wire.h"

namespace fleetrun::ps {

/// Counts the calls of one operation that have ended, so that the operation can stop at the first that failed
/// instead of waiting for a server that may never answer then.
///
/// Threads: ended() is called by channels, from any thread.
class Endings {
 public:
  Endings() = default;
  virtual ~Endings() = default;
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;

  virtual void ended(bool failed) noexcept;
  /// Returns when `calls` have ended or one has failed.
  void wait(std::size_t calls);
  /// The same; false when the deadline came first.
  bool wait(std::size_t calls, std::chrono::steady_clock::time_point deadline);
  /// Returns when more than `seen` have ended, or at the deadline; how many have.
  std::size_t wait_for_more(std::size_t seen, std::chrono::steady_clock::time_point deadline);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t ended_ = 0;
  bool failed_ = false;
};

/// One request on its way. Destroying it gives it up: the answer is dropped.
class Call {
 public:
  virtual ~Call() = default;
  virtual bool has_ended() const = 0;
  /// The answer of a call that has ended; the reader's bytes live as long as the call.
  /// Throws: Error as the server sent it, or Error(network) naming the server when it is gone.
  virtual Reader result() = 0;
  /// Of a call that has failed: whether the server had no part in that,
  /// and may have done what it was asked or not.
  virtual bool was_lost() const { return false; }
};

class Channel {
 public:
  virtual ~Channel() = default;
  /// Sends `request`; tells `endings` once when the call has ended.
  virtual std::unique_ptr<Call> start(const wire::Header& header, Message request,
                                      std::shared_ptr<Endings> endings) = 0;
  /// Where requests to this server are best made: the heap, or memory that the server shares.
  /// Lives as long as the channel.
  virtual MessageSource messages() { return {}; }
  /// How many connections to the server there have been: it grows when the server has been started again.
  virtual std::uint64_t connections() const { return 1; }
  /// "server 0 at 127.0.0.1:40001", for messages.
  virtual const std::string& name() const noexcept = 0;
};

}  // namespace fleetrun::ps
