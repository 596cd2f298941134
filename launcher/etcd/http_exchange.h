// One HTTP/1.1 request over a connection of its own, and its answer as it comes.
// On the given loop, without blocking.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/endpoint.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct HttpRequest {
  Endpoint to;
  std::string path;
  std::string body;           // JSON
  std::string authorization;  // "": none
};

/// Neither function is called after the exchange is gone, nor from inside start_exchange.
struct HttpListener {
  std::function<void(int status, std::string_view piece)> on_body;
  /// Once. `failure`: "" for a whole answer, else what happened, for people. `status`: 0 where none came.
  std::function<void(int status, const std::string& failure)> on_end;
};

enum class HttpKind {
  whole,   // the answer is there within the patience, and is not larger than 8 MiB
  stream,  // its first bytes are; it may go on without end
};

/// Its end is the end of the connection.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
};

std::unique_ptr<HttpExchange> start_exchange(boost::asio::io_context& loop, const HttpRequest& request,
                                             HttpKind kind, std::chrono::milliseconds patience,
                                             HttpListener listener);

}  // namespace fleetrun::launcher
