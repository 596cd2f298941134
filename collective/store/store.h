// Where the processes of a job find each other before they have communicators: small values under names.
//
// A name is set once. Names begin with what they are for ("world/0/address/3"), so that nothing meets what an
// earlier attempt left. Values are small: addresses, tokens, numbers.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "runtime/base/error.h"

namespace fleetrun::collective {

/// Threads: all calls, from any thread.
class Store {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Store() = default;
  /// Throws: Error(config) when the name has another value, Error(network) when the store is gone.
  virtual void set(const std::string& name, const std::string& value) = 0;
  /// The value, as soon as somebody has set it.
  /// Throws: Error(timeout) naming it when nobody has by the deadline, Error(network) when the store is gone.
  virtual std::string wait(const std::string& name, Clock::time_point deadline) = 0;
  /// Adds to a counter that begins at 0; what it is now.
  virtual std::int64_t add(const std::string& name, std::int64_t amount) = 0;
  /// For who waits for ranks elsewhere, again and again at kLookAgain. Whether it is ever told of one.
  /// Throws: Error(network) where one that is to come is known to be lost.
  virtual bool check() { return false; }
  static constexpr std::chrono::milliseconds kLookAgain{200};

  /// Throws: `seen`, the end of a rank; but what check() throws within a second where that rank has given up
  /// because of another one.
  [[noreturn]] void throw_cause(const Error& seen) {
    for (int i = 0; i < 5 && check(); ++i) std::this_thread::sleep_for(kLookAgain);
    throw Error(seen);
  }
};

}  // namespace fleetrun::collective
