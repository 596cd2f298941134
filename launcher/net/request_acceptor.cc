#include "launcher/net/request_acceptor.h"

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "runtime/base/still_here.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kBreath{100};  // before another accept, when no descriptors are left

}  // namespace

class RequestAcceptor::Waiter {
 public:
  Waiter(asio::io_context& loop, UniqueFd listener, std::size_t limit, Make make)
      : listener_(loop, listener.release()), breath_(loop), limit_(limit), make_(std::move(make)) {
    wait();
  }

 private:
  void wait() {
    listener_.async_wait(
        asio::posix::stream_descriptor::wait_read, still_here_.only([this](const error_code& error) {
          if (error) return;
          UniqueFd socket(
              ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
          if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
            return wait_later();
          if (socket && has_room()) {
            const auto connection = make_(std::move(socket));
            open_.push_back(connection);
            connection->begin();
          }
          wait();
        }));
  }

  /// False: every request is whole, and being answered.
  bool has_room() {
    std::erase_if(open_, [](const auto& weak) { return weak.expired(); });
    if (open_.size() < limit_) return true;
    const auto oldest =
        std::find_if(open_.begin(), open_.end(), [](const auto& weak) { return weak.lock()->is_half(); });
    if (oldest == open_.end()) return false;
    oldest->lock()->close();
    open_.erase(oldest);
    return true;
  }

  void wait_later() {
    breath_.expires_after(kBreath);
    breath_.async_wait(still_here_.only([this](const error_code& error) {
      if (!error) wait();
    }));
  }

  asio::posix::stream_descriptor listener_;
  asio::steady_timer breath_;
  const std::size_t limit_;
  const Make make_;
  std::vector<std::weak_ptr<RequestConnection>> open_;  // the oldest first
  StillHere still_here_;
};

RequestAcceptor::RequestAcceptor(asio::io_context& loop, UniqueFd listener, std::size_t limit, Make make)
    : waiter_(std::make_unique<Waiter>(loop, std::move(listener), limit, std::move(make))) {}

RequestAcceptor::~RequestAcceptor() = default;

}  // namespace fleetrun::launcher
