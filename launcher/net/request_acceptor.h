// Accepts connections that carry one request each, as many as are allowed at a time.
//
// Who asks for nothing makes room for others: beyond the limit the oldest connection whose request is not
// whole is closed. Everything happens in the loop, without blocking.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/base/unique_fd.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// Owned by the handlers of its operations: it is over when nobody holds it.
class RequestConnection {
 public:
  virtual ~RequestConnection() = default;
  virtual void begin() = 0;
  /// Its request is not whole yet.
  virtual bool is_half() const noexcept = 0;
  virtual void close() noexcept = 0;
};

class RequestAcceptor {
 public:
  using Make = std::function<std::shared_ptr<RequestConnection>(UniqueFd)>;

  /// `listener` listens and does not block; `make` gets sockets that do not block either.
  RequestAcceptor(boost::asio::io_context& loop, UniqueFd listener, std::size_t limit, Make make);
  ~RequestAcceptor();

 private:
  class Waiter;
  std::unique_ptr<Waiter> waiter_;
};

}  // namespace fleetrun::launcher
