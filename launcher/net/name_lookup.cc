#include "launcher/net/name_lookup.h"

#include <fcntl.h>
#include <netdb.h>
#include <string.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>

#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/quiet_thread.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class Lookup final : public NameLookup, public std::enable_shared_from_this<Lookup> {
 public:
  Lookup(asio::io_context& loop, std::function<void(FoundAddresses)> found)
      : loop_(loop), descriptor_(loop), found_(std::move(found)) {}

  void tell_later(FoundAddresses result) {
    asio::post(loop_, [self = shared_from_this(), result = std::move(result)]() mutable {
      self->tell(std::move(result));
    });
  }

  void start(const Endpoint& endpoint) {
    int ends[2];
    check_errno(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), "pipe2", "looking up " + endpoint.host);
    descriptor_.assign(ends[0]);
    // The thread owns one end and a share of the result: it needs nothing of ours that can go away.
    auto result = std::make_shared<FoundAddresses>();
    auto done = std::make_shared<UniqueFd>(ends[1]);
    quiet_thread([endpoint, result, done] {
      *result = look_up_now(endpoint);
      done->reset();  // which the loop sees as the end of the pipe
    }).detach();
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                           [self = shared_from_this(), result](const error_code& error) {
                             if (!error) self->tell(std::move(*result));
                           });
  }

  void cancel() {
    found_ = nullptr;
    error_code ignored;
    descriptor_.close(ignored);
  }

 private:
  void tell(FoundAddresses result) {
    if (const auto found = std::exchange(found_, nullptr)) found(std::move(result));
  }

  asio::io_context& loop_;
  asio::posix::stream_descriptor descriptor_;
  std::function<void(FoundAddresses)> found_;
};

/// What is handed out: the lookup itself belongs to its operations.
class Handle final : public NameLookup {
 public:
  explicit Handle(std::shared_ptr<Lookup> lookup) : lookup_(std::move(lookup)) {}
  ~Handle() override { lookup_->cancel(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 private:
  std::shared_ptr<Lookup> lookup_;
};

}  // namespace

FoundAddresses look_up_now(const Endpoint& endpoint) {
  FoundAddresses result;
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &wanted, &found);
  if (failure != 0) {
    // The loopback is known by name also where no file says so.
    if (endpoint.host == "localhost") return look_up_now({"127.0.0.1", endpoint.port});
    result.failure = failure == EAI_SYSTEM ? ::strerror(errno) : ::gai_strerror(failure);
    return result;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  for (const addrinfo* entry = found; entry; entry = entry->ai_next) {
    SocketAddress& address = result.addresses.emplace_back();
    address.length = entry->ai_addrlen;
    ::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
  }
  return result;
}

std::unique_ptr<NameLookup> look_up(asio::io_context& loop, const Endpoint& endpoint,
                                    std::function<void(FoundAddresses)> found) {
  auto lookup = std::make_shared<Lookup>(loop, std::move(found));
  auto handle = std::make_unique<Handle>(lookup);
  if (const auto address = numeric_address(endpoint)) {
    lookup->tell_later({{*address}, ""});
  } else {
    try {
      lookup->start(endpoint);
    } catch (const std::system_error& error) {  // no thread to be had
      lookup->tell_later({{}, error.what()});
    }
  }
  return handle;
}

}  // namespace fleetrun::launcher
