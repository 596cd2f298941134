#include "launcher/doctor/reach.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <list>
#include <set>

#include "launcher/host/port_lease.h"
#include "runtime/base/error.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/text.h"
#include "runtime/secure/crypto.h"

namespace fleetrun::launcher::doctor {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr std::size_t kChallengeBytes = 16;
/// After what proves who it is, each side sends this much: packets as large as the way takes, in both
/// directions.
constexpr std::size_t kLargeBytes = 128 << 10;
constexpr int kMaxConnections = 512;
constexpr std::size_t kPorts = 8;
constexpr std::chrono::seconds kPatience{5};
constexpr const char* kLargeLost = "small packets come through and large ones do not (MTU?)";

std::string proof(const std::string& key, std::string_view side, std::string_view challenge) {
  return hmac_sha256(key, std::string(side).append(challenge));
}

/// A dialer that came. Owned by its operations.
class Caller : public std::enable_shared_from_this<Caller> {
 public:
  Caller(tcp::socket socket, std::string key, std::shared_ptr<int> count)
      : socket_(std::move(socket)),
        deadline_(socket_.get_executor()),
        key_(std::move(key)),
        count_(std::move(count)) {
    ++*count_;
  }
  ~Caller() { --*count_; }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void begin() {
    deadline_.expires_after(kPatience);
    deadline_.async_wait([weak = weak_from_this()](const error_code& error) {
      error_code ignored;
      if (const auto self = weak.lock(); self && !error) self->socket_.close(ignored);
    });
    challenge_ = random_bytes(kChallengeBytes);
    asio::async_write(socket_, asio::buffer(challenge_),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (!error) self->listen();
                      });
  }

 private:
  void listen() {
    asio::async_read(socket_, asio::buffer(answer_),
                     [self = shared_from_this()](const error_code& error, std::size_t) {
                       if (!error) self->answer();
                     });
  }

  void answer() {
    if (!equal_in_constant_time({answer_.data(), answer_.size()}, proof(key_, "dial", challenge_))) return;
    proof_ = proof(key_, "listen", challenge_);
    asio::async_write(socket_, asio::buffer(proof_),  // by itself, in a small packet
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (!error) self->exchange_large();
                      });
  }

  void exchange_large() {
    large_.resize(kLargeBytes);
    sent_large_.resize(kLargeBytes);
    asio::async_write(socket_, asio::buffer(sent_large_),
                      [self = shared_from_this()](const error_code&, std::size_t) {});
    asio::async_read(socket_, asio::buffer(large_),
                     [self = shared_from_this()](const error_code& error, std::size_t) {
                       if (!error) self->thank();
                     });
  }

  /// Before our own may have gone: all of these bytes are alike.
  void thank() {
    asio::async_write(socket_, asio::buffer(large_.data(), 1),
                      [self = shared_from_this()](const error_code&, std::size_t) {});
  }

  tcp::socket socket_;
  asio::steady_timer deadline_;
  std::string key_, challenge_, proof_, large_, sent_large_;
  std::array<char, kDigestBytes> answer_{};
  std::shared_ptr<int> count_;  // of those that are there; with the listener and the others
};

class Listener final : public ReachListener {
 public:
  Listener(asio::io_context& loop, const std::vector<Endpoint>& endpoints, std::string key)
      : key_(std::move(key)), endpoints_(endpoints) {
    for (const Endpoint& endpoint : endpoints) {
      const tcp::endpoint where(asio::ip::make_address(endpoint.host), endpoint.port);
      tcp::acceptor& acceptor = acceptors_.emplace_back(loop);
      acceptor.open(where.protocol());
      acceptor.set_option(tcp::acceptor::reuse_address(true));
      acceptor.bind(where);
      acceptor.listen();
    }
    for (tcp::acceptor& acceptor : acceptors_) accept(acceptor);
  }

  const std::vector<Endpoint>& endpoints() const noexcept override { return endpoints_; }

 private:
  void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([this, &acceptor](const error_code& error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error && *count_ < kMaxConnections)
        std::make_shared<Caller>(std::move(socket), key_, count_)->begin();
      accept(acceptor);
    });
  }

  std::list<tcp::acceptor> acceptors_;
  std::string key_;
  std::vector<Endpoint> endpoints_;
  std::shared_ptr<int> count_ = std::make_shared<int>(0);
};

/// One dial. Owned by its operations.
class Dial : public std::enable_shared_from_this<Dial> {
 public:
  Dial(asio::io_context& loop, Target target, std::string key, bool large, std::function<void(Reach)> done)
      : socket_(loop),
        deadline_(loop),
        target_(std::move(target)),
        key_(std::move(key)),
        sends_large_(large),
        done_(std::move(done)) {}

  void begin(std::chrono::milliseconds patience) {
    began_ = steady_clock::now();
    deadline_.expires_after(patience);
    deadline_.async_wait([weak = weak_from_this()](const error_code& error) {
      const auto self = weak.lock();
      if (self && !error)
        self->finish(self->proven_      ? kLargeLost
                     : self->connected_ ? "it was let in, and got no answer"
                                        : "no answer (a firewall?)");
    });
    error_code wrong;
    const auto address = asio::ip::make_address(target_.endpoint.host, wrong);
    if (wrong) return fail_later("'" + target_.endpoint.host + "' is not an address");
    socket_.async_connect({address, target_.endpoint.port},
                          [self = shared_from_this()](const error_code& error) {
                            if (error) return self->finish(error.message());
                            self->connected_ = true;
                            self->read(self->challenge_, [self] { self->prove(); });
                          });
  }

  void drop() noexcept {
    done_ = nullptr;
    error_code ignored;
    deadline_.cancel(ignored);
    socket_.close(ignored);
  }

 private:
  void fail_later(const std::string& failure) {
    asio::post(socket_.get_executor(), [self = shared_from_this(), failure] { self->finish(failure); });
  }

  template <class Array>
  void read(Array& bytes, std::function<void()> then) {
    asio::async_read(
        socket_, asio::buffer(bytes),
        [self = shared_from_this(), then = std::move(then)](const error_code& error, std::size_t) {
          if (!error) return then();
          self->finish(error == asio::error::eof ? "another process listens there" : error.message());
        });
  }

  void prove() {
    proof_ = proof(key_, "dial", {challenge_.data(), challenge_.size()});
    asio::async_write(
        socket_, asio::buffer(proof_), [self = shared_from_this()](const error_code& error, std::size_t) {
          if (error) return self->finish(error.message());
          self->read(self->answer_, [self] {
            const std::string expected =
                proof(self->key_, "listen", {self->challenge_.data(), self->challenge_.size()});
            const bool same = equal_in_constant_time({self->answer_.data(), self->answer_.size()}, expected);
            if (!same) return self->finish("another process listens there");
            self->proven_ = true;
            self->took_ = steady_clock::now() - self->began_;
            if (!self->sends_large_) return self->finish("");
            self->exchange_large();
          });
        });
  }

  /// Theirs come while ours go.
  void exchange_large() {
    large_.resize(kLargeBytes);
    asio::async_write(socket_, asio::buffer(sent_large_ = std::string(kLargeBytes, '\0')),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (error) self->finish(error.message());
                      });
    read(large_, [self = shared_from_this()] { self->read(self->thanks_, [self] { self->finish(""); }); });
  }

  void finish(const std::string& failure) {
    const auto self = shared_from_this();
    const auto done = std::move(done_);
    drop();
    const auto time =
        std::chrono::duration_cast<std::chrono::microseconds>(proven_ ? took_ : steady_clock::now() - began_);
    if (done) done({.host = target_.host, .failure = failure, .micros = time.count()});
  }

  tcp::socket socket_;
  asio::steady_timer deadline_;
  Target target_;
  std::string key_, proof_;
  bool sends_large_;
  std::function<void(Reach)> done_;
  steady_clock::time_point began_;
  steady_clock::duration took_{};  // until it had proven who it is
  bool connected_ = false, proven_ = false;
  std::string large_, sent_large_;
  std::array<char, 1> thanks_{};
  std::array<char, kChallengeBytes> challenge_{};
  std::array<char, kDigestBytes> answer_{};
};

class Dials final : public Dialing {
 public:
  Dials(asio::io_context& loop, std::vector<Target> targets, const std::string& key,
        std::chrono::milliseconds patience, std::function<void(const std::vector<Reach>&)> done)
      : results_(targets.size()), left_(targets.size()), done_(std::move(done)) {
    std::set<std::uint32_t> hosts;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const bool is_first = hosts.insert(targets[i].host).second;
      dials_.push_back(
          std::make_shared<Dial>(loop, std::move(targets[i]), key, is_first, [this, i](Reach reach) {
            results_[i] = std::move(reach);
            if (--left_ == 0) done_(results_);
          }));
      dials_.back()->begin(patience);
    }
    if (dials_.empty())
      asio::post(loop, [this, alive = std::weak_ptr(alive_)] {
        if (!alive.expired()) done_(results_);
      });
  }
  ~Dials() override {
    for (const auto& dial : dials_) dial->drop();
  }
  Dials(const Dials&) = delete;
  Dials& operator=(const Dials&) = delete;

 private:
  std::vector<std::shared_ptr<Dial>> dials_;  // with their operations
  std::vector<Reach> results_;
  std::size_t left_;
  std::function<void(const std::vector<Reach>&)> done_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<ReachListener> listen_for_doctors(asio::io_context& loop, const std::string& host,
                                                  std::string key,
                                                  const std::optional<std::pair<int, int>>& ports) {
  PortLeases leases;
  if (ports) leases.set_range(ports->first, ports->second);
  std::vector<Endpoint> endpoints = {leases.lease_free(host)};
  try {
    while (endpoints.size() < kPorts) endpoints.push_back(leases.lease_free(host));
  } catch (const Error&) {
    // The range has no more that are free.
  }
  for (const Endpoint& endpoint : endpoints) leases.release(endpoint);
  try {
    return std::make_unique<Listener>(loop, endpoints, std::move(key));
  } catch (const boost::system::system_error& error) {
    throw Error(ErrorKind::host, "it is impossible to listen at " +
                                     to_string(std::span<const Endpoint>(endpoints)) + ": " +
                                     error.code().message());
  }
}

std::vector<Reach> reaches_by_host(const std::vector<Target>& targets, const std::vector<Reach>& reaches) {
  std::vector<Reach> hosts;
  for (std::size_t begin = 0, end = 0; begin < reaches.size(); begin = end) {
    std::vector<std::string> closed;
    Reach host = reaches[begin];
    for (end = begin; end < reaches.size() && reaches[end].host == host.host; ++end) {
      if (reaches[end].failure.empty()) continue;
      if (host.failure.empty()) host.failure = reaches[end].failure;
      if (end < targets.size()) closed.push_back(std::to_string(targets[end].endpoint.port));
    }
    const std::size_t open = end - begin - closed.size();
    if (!closed.empty() && open > 0 && host.failure != kLargeLost)  // which were sent to one port alone
      host.failure += std::string(kAtPorts) + (closed.size() > 1 ? "s " : " ") + join(closed, ", ") +
                      " and not at " + std::to_string(open) + (open > 1 ? " others" : " other") +
                      " of the range";
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::unique_ptr<Dialing> dial_all(asio::io_context& loop, std::vector<Target> targets, const std::string& key,
                                  std::chrono::milliseconds patience,
                                  std::function<void(const std::vector<Reach>&)> done) {
  return std::make_unique<Dials>(loop, std::move(targets), key, patience, std::move(done));
}

}  // namespace fleetrun::launcher::doctor
