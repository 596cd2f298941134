// The page's HTTP/1.1 server: one request a connection, on the loop, without blocking. A client that is slow,
// silent or greedy holds nothing but its own connection, and that for a limited time.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "launcher/ui/http.h"
#include "runtime/base/unique_fd.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct UiLimits {
  std::size_t head_bytes = 16'384, body_bytes = 65'536;
  std::size_t connections = 64;  // the oldest whose request is not whole makes room for one more
  std::chrono::milliseconds to_ask{10'000}, to_take{30'000};  // the request; the answer
};

class UiServer {
 public:
  virtual ~UiServer() = default;
};

/// `listener` listens and does not block. `handler` may not throw anything but Error.
std::unique_ptr<UiServer> serve_ui(boost::asio::io_context& loop, UniqueFd listener, UiHandler handler,
                                   const UiLimits& limits = {});

}  // namespace fleetrun::launcher
