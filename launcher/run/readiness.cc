// A listening socket does not announce itself, so ports are asked again and again: every 5 ms at first, every
// 100 ms later. Logs are watched through inotify, descriptors by reading them.
#include "launcher/run/readiness.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <regex>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t kLongestReadyLine =
    4096;  // what is longer is looked at in parts: <regex> recurses by length

/// Watches one process; calls `on_ready` at most once, from the loop. Its destructor ends the watch.
class Watch {
 public:
  explicit Watch(std::function<void()> on_ready) : on_ready_(std::move(on_ready)) {}
  virtual ~Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Nothing happens any more, and nothing keeps the loop.
  void end() {
    alive_.reset();
    on_ready_ = nullptr;
    cancel();
  }

 protected:
  virtual void cancel() = 0;
  void ready() {
    if (auto call = std::exchange(on_ready_, nullptr)) call();
  }
  /// Handlers hold this weakly: one that runs after the end of the watch finds it empty.
  std::weak_ptr<int> alive() const { return alive_; }

 private:
  std::function<void()> on_ready_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

class PortWatch final : public Watch {
 public:
  PortWatch(asio::io_context& loop, Endpoint endpoint, std::function<void()> on_ready)
      : Watch(std::move(on_ready)),
        endpoint_(std::move(endpoint)),
        socket_(loop),
        timer_(loop),
        resolver_(loop) {
    try_again();
  }

 private:
  void cancel() override {
    error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
  }

  void try_again() {
    error_code error;
    const auto address = asio::ip::make_address(endpoint_.host, error);
    tcp::endpoint target(address, endpoint_.port);
    if (error) {
      const auto found = resolver_.resolve(endpoint_.host, std::to_string(endpoint_.port), error);
      if (error || found.empty()) return wait();
      target = found.begin()->endpoint();
    }
    socket_.async_connect(target, [this, alive = alive()](const error_code& failed) {
      if (alive.expired()) return;
      const bool accepted = !failed && !is_connected_to_itself();
      error_code ignored;
      socket_.close(ignored);
      if (accepted) return ready();
      wait();
    });
  }

  /// TCP lets a socket connect to its own port when nobody listens there and the kernel happens to pick it.
  bool is_connected_to_itself() const {
    error_code error;
    return socket_.local_endpoint(error) == socket_.remote_endpoint(error);
  }

  void wait() {
    timer_.expires_after(pause_);
    pause_ = std::min(pause_ * 3 / 2, milliseconds(100));
    timer_.async_wait([this, alive = alive()](const error_code& error) {
      if (!error && !alive.expired()) try_again();
    });
  }

  Endpoint endpoint_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  tcp::resolver resolver_;
  milliseconds pause_{5};
};

class LogWatch final : public Watch {
 public:
  LogWatch(asio::io_context& loop, const std::string& path, std::uint64_t start, const std::regex& wanted,
           std::function<void()> on_ready)
      : Watch(std::move(on_ready)), wanted_(wanted), changes_(loop) {
    log_ = UniqueFd(
        check_errno(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open", "watching " + path));
    check_errno(::lseek(log_.value(), static_cast<off_t>(start), SEEK_SET) < 0 ? -1 : 0, "lseek",
                "watching " + path);
    UniqueFd inotify(
        check_errno(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK), "inotify_init1", "watching " + path));
    check_errno(::inotify_add_watch(inotify.value(), path.c_str(), IN_MODIFY), "inotify_add_watch",
                "watching " + path);
    changes_.assign(inotify.release());
    asio::post(loop, [this, alive = alive()] {
      if (!alive.expired()) read_on();
    });
  }

 private:
  void cancel() override {
    error_code ignored;
    changes_.close(ignored);
  }

  void read_on() {
    char bytes[16384];
    for (ssize_t count; (count = ::read(log_.value(), bytes, sizeof bytes)) > 0;) {
      if (!matches({bytes, static_cast<std::size_t>(count)})) continue;
      return ready();
    }
    changes_.async_read_some(asio::buffer(events_),
                             [this, alive = alive()](const error_code& error, std::size_t) {
                               if (!error && !alive.expired()) read_on();
                             });
  }

  bool matches(std::string_view bytes) {
    for (const char byte : bytes) {
      if (byte != '\n' && byte != '\r' && line_.size() < kLongestReadyLine) {
        line_.push_back(byte);
        continue;
      }
      if (std::regex_search(line_, wanted_)) return true;
      line_.assign(byte == '\n' || byte == '\r' ? 0 : 1, byte);
    }
    return false;
  }

  const std::regex& wanted_;
  UniqueFd log_;
  asio::posix::stream_descriptor changes_;
  std::string line_;  // the beginning of one whose end has not come
  char events_[4096];
};

class DescriptorWatch final : public Watch {
 public:
  DescriptorWatch(asio::io_context& loop, UniqueFd descriptor, std::function<void()> on_ready)
      : Watch(std::move(on_ready)), pipe_(loop, descriptor.release()) {
    read_on();
  }

 private:
  void cancel() override {
    error_code ignored;
    pipe_.close(ignored);
  }

  void read_on() {
    pipe_.async_read_some(
        asio::buffer(bytes_), [this, alive = alive()](const error_code& error, std::size_t count) {
          if (alive.expired()) return;
          if (std::find(bytes_, bytes_ + count, '\n') != bytes_ + count) return ready();
          if (!error)
            read_on();  // at its end: it was closed without a word, as the death of the process does
        });
  }

  asio::posix::stream_descriptor pipe_;
  char bytes_[256];
};

class RoleProbe final : public ReadinessProbe {
 public:
  RoleProbe(asio::io_context& loop, const Readiness& readiness, std::vector<ReadySign> signs,
            milliseconds timeout, std::function<void(bool)> on_done)
      : deadline_(loop, timeout), on_done_(std::move(on_done)) {
    if (readiness.kind == Readiness::Kind::log_line) wanted_ = std::regex(readiness.text);
    deadline_.async_wait([this, alive = std::weak_ptr<int>(alive_)](const error_code& error) {
      if (!error && !alive.expired()) finish(false);
    });
    for (ReadySign& sign : signs) {
      const std::size_t index = sign.index;
      if (readiness.kind != Readiness::Kind::none)
        watches_.emplace_back(index,
                              watch(loop, readiness, std::move(sign), [this, index] { forget(index); }));
    }
    if (watches_.empty())
      asio::post(loop, [this, alive = std::weak_ptr<int>(alive_)] {
        if (!alive.expired()) finish(true);
      });
  }

  void forget(std::size_t index) override {
    for (auto& [watched, watch] : watches_) {
      if (watched == index && watch) retire(std::move(watch));
    }
    const bool all =
        std::all_of(watches_.begin(), watches_.end(), [](const auto& entry) { return !entry.second; });
    if (all) finish(true);
  }

  void stop() override {
    on_done_ = nullptr;
    deadline_.cancel();
    for (auto& [index, watch] : watches_) {
      if (watch) retire(std::move(watch));
    }
  }

 private:
  std::unique_ptr<Watch> watch(asio::io_context& loop, const Readiness& readiness, ReadySign sign,
                               std::function<void()> on_ready) {
    if (readiness.kind == Readiness::Kind::log_line)
      return std::make_unique<LogWatch>(loop, sign.log, sign.log_start, wanted_, std::move(on_ready));
    if (readiness.kind == Readiness::Kind::descriptor)
      return std::make_unique<DescriptorWatch>(loop, std::move(sign.descriptor), std::move(on_ready));
    return std::make_unique<PortWatch>(
        loop, readiness.text.empty() ? sign.endpoint : parse_endpoint(readiness.text), std::move(on_ready));
  }

  /// It may be the one that is calling just now: it is destroyed with the readiness probe.
  void retire(std::unique_ptr<Watch> watch) {
    watch->end();
    retired_.push_back(std::move(watch));
  }

  void finish(bool all) {
    auto done = std::exchange(on_done_, nullptr);
    stop();
    if (done) done(all);
  }

  asio::steady_timer deadline_;
  std::function<void(bool)> on_done_;
  std::regex wanted_;
  std::vector<std::pair<std::size_t, std::unique_ptr<Watch>>> watches_;  // by process; empty: ready
  std::vector<std::unique_ptr<Watch>> retired_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace

std::unique_ptr<ReadinessProbe> watch_role(asio::io_context& loop, const Readiness& readiness,
                                           std::vector<ReadySign> signs, milliseconds timeout,
                                           std::function<void(bool all)> on_done) {
  return std::make_unique<RoleProbe>(loop, readiness, std::move(signs), timeout, std::move(on_done));
}

std::pair<UniqueFd, UniqueFd> ready_pipe() {
  int ends[2];
  check_errno(::pipe2(ends, O_CLOEXEC), "pipe2", "waiting for readiness");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace fleetrun::launcher
