// fork() and not posix_spawn(): fleetrun is small, and the child has things to settle.
#include "launcher/stacks/stack_tool.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <utility>

#include "launcher/host/helper_child.h"
#include "runtime/base/close_from.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kReapPause{5};

class ForkedRun final : public ToolRun {
 public:
  ForkedRun(asio::io_context& loop, pid_t pid, UniqueFd output, const ToolLimits& limits, ToolDone on_done)
      : pid_(pid),
        output_(loop, output.release()),
        deadline_(loop, limits.deadline),
        reap_(loop),
        limits_(limits),
        on_done_(std::move(on_done)) {
    deadline_.async_wait([this](const error_code& error) {
      if (error) return;
      in_time_ = false;
      stop();
    });
    read_on();
  }

  ~ForkedRun() override {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr,
              WNOHANG);  // where it takes longer to die, fleetrun's own end takes the rest of it away
  }

 private:
  void read_on() {
    output_.async_read_some(asio::buffer(block_), [this](const error_code& error, std::size_t count) {
      if (error == asio::error::operation_aborted) return;
      text_.append(block_.data(), error ? 0 : std::min(count, limits_.max_bytes - text_.size()));
      if (error || text_.size() >= limits_.max_bytes)
        stop();
      else
        read_on();
    });
  }

  /// Nothing more is wanted from it: whatever of it still lives is killed, then waited for without blocking.
  void stop() {
    error_code ignored;
    output_.close(ignored);
    deadline_.cancel();
    ::kill(-pid_, SIGKILL);
    reap();
  }

  void reap() {
    const pid_t ended = ::waitpid(pid_, nullptr, WNOHANG);
    if (ended == 0 && reaps_++ < 200) {
      ::kill(pid_, SIGKILL);
      reap_.expires_after(kReapPause);
      reap_.async_wait([this](const error_code& error) {
        if (!error) reap();
      });
      return;
    }
    if (ended != 0) pid_ = -1;
    const ToolDone on_done = std::move(on_done_);
    on_done(std::move(text_), in_time_);  // may destroy this
  }

  pid_t pid_;
  asio::posix::stream_descriptor output_;
  asio::steady_timer deadline_, reap_;
  ToolLimits limits_;
  ToolDone on_done_;
  std::string text_;
  std::array<char, 16384> block_;
  int reaps_ = 0;
  bool in_time_ = true;
};

/// `child` runs in the new process with its standard output and error on the pipe, and does not return.
template <class Child>
std::unique_ptr<ToolRun> start(asio::io_context& loop, const ToolLimits& limits, ToolDone on_done,
                               Child&& child) {
  int ends[2];
  check_errno(::pipe2(ends, O_CLOEXEC), "pipe2", "reading stacks");
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = check_errno(::fork(), "fork", "reading stacks");
  if (pid == 0) {
    settle_child(parent);
    child(theirs.value());
    ::_exit(127);
  }
  return std::make_unique<ForkedRun>(loop, pid, std::move(ours), limits, std::move(on_done));
}

}  // namespace

std::unique_ptr<ToolRun> run_tool(asio::io_context& loop, const std::vector<std::string>& argv,
                                  const std::vector<std::string>& environment, const ToolLimits& limits,
                                  ToolDone on_done) {
  const std::vector<char*> arguments = pointers(argv), variables = pointers(environment);
  return start(loop, limits, std::move(on_done), [&](int output) {
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    close_from(3);
    ::execve(arguments[0], arguments.data(), variables.data());
  });
}

std::unique_ptr<ToolRun> run_apart(asio::io_context& loop, const std::function<void(int)>& work,
                                   const ToolLimits& limits, ToolDone on_done) {
  return start(loop, limits, std::move(on_done), [&](int output) {
    work(output);
    ::_exit(0);
  });
}

}  // namespace fleetrun::launcher
