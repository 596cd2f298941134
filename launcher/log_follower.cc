// inotify says when the file grew; one block is read and written at a time. The output must not be made
// non-blocking for everybody who shares it, so pipes and terminals are opened once more through /proc,
// sockets are sent to with MSG_DONTWAIT, and files do not block.
#include "launcher/log_follower.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cerrno>
#include <chrono>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::seconds kPatience{10};  // with a reader that takes nothing, once the job is over
// Closing an inotify descriptor takes the kernel several timer ticks, so a job that is over at once does not
// open one.
constexpr std::chrono::milliseconds kWatchDelay{30};
constexpr std::chrono::milliseconds kPollPause{100};  // where there is no inotify

class Follower final : public LogFollower {
 public:
  Follower(asio::io_context& loop, const std::string& path, off_t start, int output)
      : loop_(loop),
        file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)),
        position_(start),
        changes_(loop),
        ready_(loop),
        poll_(loop),
        patience_(loop) {
    open_output(output);
    poll_.expires_after(kWatchDelay);
    poll_.async_wait([this, path](const error_code& error) {
      if (error || on_drained_) return;
      watch(path);
      advance();
      await_change();
    });
  }

  void drain(std::function<void()> on_done) override {
    on_drained_ = std::move(on_done);
    arm_patience();
    asio::post(loop_, [this] { advance(); });
  }

 private:
  void open_output(int output) {
    struct stat info = {};
    if (::fstat(output, &info) != 0) {
      gone_ = true;
      return;
    }
    is_socket_ = S_ISSOCK(info.st_mode);
    if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)) {
      const std::string again = "/proc/self/fd/" + std::to_string(output);
      output_.reset(::open(again.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    }
    if (!output_) output_.reset(::fcntl(output, F_DUPFD_CLOEXEC, 3));
    gone_ = !output_;
    may_wait_ = !gone_ && !S_ISREG(info.st_mode);
  }

  void watch(const std::string& path) {
    const int notify = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (notify >= 0) changes_.assign(notify);
    if (notify >= 0 && ::inotify_add_watch(notify, path.c_str(), IN_MODIFY) < 0) changes_.close();
  }

  void await_change() {
    if (changes_.is_open()) {
      changes_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
        if (error) return;
        char events[4096];
        while (::read(changes_.native_handle(), events, sizeof events) > 0) {
        }
        advance();
        await_change();
      });
      return;
    }
    poll_.expires_after(kPollPause);
    poll_.async_wait([this](const error_code& error) {
      if (error) return;
      advance();
      await_change();
    });
  }

  /// Shows what there is, a bounded amount per turn, so that a process that writes without end does not keep
  /// the loop.
  void advance() {
    if (waiting_) return;
    for (int turn = 0; !gone_ && turn < 16; ++turn) {
      if (shown_ == block_.size() && !read_block()) return finish_if_draining();
      const ssize_t count = write_some();
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return await_output();
      if (count < 0) gone_ = true;
      if (count > 0) shown_ += static_cast<std::size_t>(count);
      if (count > 0 && on_drained_) arm_patience();
    }
    if (gone_) return finish_if_draining();
    asio::post(loop_, [this] { advance(); });
  }

  bool read_block() {
    block_.resize(64 * 1024);
    const ssize_t count = file_ ? ::pread(file_.value(), block_.data(), block_.size(), position_) : 0;
    block_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    shown_ = 0;
    position_ += count > 0 ? count : 0;
    return count > 0;
  }

  ssize_t write_some() {
    const std::size_t left = block_.size() - shown_;
    if (is_socket_) return ::send(output_.value(), block_.data() + shown_, left, MSG_DONTWAIT | MSG_NOSIGNAL);
    return ::write(output_.value(), block_.data() + shown_, left);
  }

  void await_output() {
    if (!may_wait_) {
      gone_ = true;
      return finish_if_draining();
    }
    waiting_ = true;
    if (!ready_.is_open()) ready_.assign(::fcntl(output_.value(), F_DUPFD_CLOEXEC, 3));
    ready_.async_wait(asio::posix::stream_descriptor::wait_write, [this](const error_code& error) {
      if (error) return;
      waiting_ = false;
      advance();
    });
  }

  void arm_patience() {
    patience_.expires_after(kPatience);
    patience_.async_wait([this](const error_code& error) {
      if (error) return;
      gone_ = true;
      waiting_ = false;
      finish_if_draining();
    });
  }

  void finish_if_draining() {
    if (!on_drained_) return;
    patience_.cancel();
    auto done = std::exchange(on_drained_, nullptr);
    done();
  }

  asio::io_context& loop_;
  UniqueFd file_;
  off_t position_;
  UniqueFd output_;
  bool is_socket_ = false, may_wait_ = false, gone_ = false, waiting_ = false;
  asio::posix::stream_descriptor changes_, ready_;
  asio::steady_timer poll_, patience_;
  std::string block_;
  std::size_t shown_ = 0;
  std::function<void()> on_drained_;
};

}  // namespace

std::unique_ptr<LogFollower> follow_log(asio::io_context& loop, const std::string& path, off_t start,
                                        int output) {
  return std::make_unique<Follower>(loop, path, start, output);
}

}  // namespace fleetrun::launcher
