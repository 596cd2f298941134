// Boost.Process 1.81 (v2) starts fleetrun-init and waits for it; everything else goes over the lifeline.
//
// Known about this version: it has to be compiled in one file (src.hpp below); a child whose exec fails
// leaves through
// ::exit(), which would run our exit handlers in it, so an initializer leaves through _exit() first; it
// closes every descriptor but 0, 1, 2 and its whitelist in the child; where the kernel has no pidfds its
// handle of a process throws, so that it is told to use none, and nothing but the pid is kept.
#define BOOST_PROCESS_V2_SEPARATE_COMPILATION
#define BOOST_PROCESS_V2_DISABLE_PIDFD_OPEN
#include "launcher/spawn/process_spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/process/v2/posix/bind_fd.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/src.hpp>

#include <filesystem>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include "launcher/init/containment.h"
#include "runtime/base/error.h"
#include "runtime/base/passed_files.h"
#include "runtime/base/still_here.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;

constexpr int kInitLifeline = 3;

/// Runs in the child between fork and exec: puts the lifeline at its number, and never lets a failed exec run
/// exit handlers.
struct InitChild {
  int lifeline;

  template <class Launcher>
  process::error_code on_setup(Launcher& launcher, const process::filesystem::path&, const char* const*&) {
    launcher.fd_whitelist.push_back(kInitLifeline);
    return {};
  }
  template <class Launcher>
  process::error_code on_exec_setup(Launcher&, const process::filesystem::path&, const char* const*&) {
    // dup2 onto itself would keep close-on-exec; the socket is made above 3, see start_pod.
    if (::dup2(lifeline, kInitLifeline) == -1) return {errno, boost::system::system_category()};
    return {};
  }
  // Variadic on purpose: Boost looks for a hook with five arguments and then calls it with four.
  template <class... Arguments>
  void on_exec_error(Arguments&&...) {
    ::_exit(127);
  }
};

UniqueFd copy_of(int fd) {
  return UniqueFd(check_errno(::fcntl(fd, F_DUPFD_CLOEXEC, kInitLifeline), "fcntl",
                              "passing a descriptor to a process", ErrorKind::spawn));
}

void wait_for(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string current_directory() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

class InitPod final : public Pod {
 public:
  InitPod(asio::io_context& loop, pid_t init, UniqueFd lifeline, const SetupFrame& setup,
          PodListener& listener)
      : init_(init),
        lifeline_(loop, lifeline.release()),
        directory_(current_directory()),
        required_(setup.required),
        listener_(listener) {
    send(setup);
    read_on();
  }

  ~InitPod() override {
    boost::system::error_code ignored;
    lifeline_.close(ignored);     // the order to kill everything and end
    if (ended_) wait_for(init_);  // else a process that SIGKILL does not end keeps init; neither keeps us
  }

  /// Frames of one turn of the loop leave together: one wake-up of init starts all processes.
  void send(const Frame& frame, std::vector<UniqueFd> descriptors = {}) {
    if (pending_descriptors_.size() + descriptors.size() > kMaxPassedFiles) flush();
    pending_.append(encode(frame));
    std::move(descriptors.begin(), descriptors.end(), std::back_inserter(pending_descriptors_));
    if (std::exchange(flush_posted_, true)) return;
    asio::post(lifeline_.get_executor(), still_here_.only([this] {
      flush_posted_ = false;
      flush();
    }));
  }

  void start(std::size_t index, const ProcessSpec& spec, const StartExtras& extras) override {
    if (extras.passed.size() > kMaxPassed)
      throw Error(ErrorKind::spawn, std::to_string(extras.passed.size()) +
                                        " descriptors cannot be passed to one process, only " +
                                        std::to_string(kMaxPassed));
    StartFrame frame;
    frame.index = static_cast<std::uint32_t>(index);
    frame.program = spec.program;
    frame.argv = spec.argv;
    frame.environment = spec.environment.entries();
    frame.environment.insert(frame.environment.end(), spec.unset.begin(), spec.unset.end());
    frame.environment.insert(frame.environment.end(), extras.environment.begin(), extras.environment.end());
    if (spec.cwd != directory_) frame.cwd = spec.cwd;  // where fleetrun is already, no permission is needed
    frame.cpus.assign(spec.cpus.begin(), spec.cpus.end());
    frame.memory_nodes.assign(spec.memory_nodes.begin(), spec.memory_nodes.end());
    frame.alone = extras.alone;
    frame.controls_stdin = extras.controls_stdin;
    std::vector<UniqueFd> descriptors;
    descriptors.push_back(copy_of(extras.log_fd));
    frame.has_stdin = extras.stdin_fd >= 0;
    if (frame.has_stdin) descriptors.push_back(copy_of(extras.stdin_fd));
    for (const PassedDescriptor& passed : extras.passed) {
      frame.passed.push_back(passed.number);
      descriptors.push_back(copy_of(passed.fd));
    }
    send(frame, std::move(descriptors));
  }

  void signal(std::size_t index, int number, bool resume) override {
    send(SignalFrame{.index = static_cast<std::uint32_t>(index), .number = number, .resume = resume});
  }
  void kill(std::size_t index) override { signal(index, SIGKILL, false); }
  void kill() override { signal(kEveryProcess, SIGKILL, false); }
  void sweep() override { send(SweepFrame{kEveryProcess}); }
  void sweep(std::size_t index) override { send(SweepFrame{static_cast<std::uint32_t>(index)}); }
  void lease(const LeaseFrame& lease) override { send(lease); }
  void finish(bool gently) override { send(FinishFrame{gently}); }

 private:
  void flush() {
    std::size_t sent = send_first();
    pending_descriptors_.clear();
    while (sent < pending_.size()) {
      const ssize_t count =
          ::send(lifeline_.native_handle(), pending_.data() + sent, pending_.size() - sent, MSG_NOSIGNAL);
      if (count > 0)
        sent += static_cast<std::size_t>(count);
      else if (!wait_writable())
        break;  // init is gone, which the read side reports
    }
    pending_.clear();
  }

  /// The descriptors go with the first bytes.
  std::size_t send_first() {
    std::vector<int> files;
    for (const UniqueFd& fd : pending_descriptors_) files.push_back(fd.value());
    for (;;) {
      const ssize_t count =
          send_with_files(lifeline_.native_handle(), std::as_bytes(std::span(pending_)), files);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (!wait_writable()) return pending_.size();
    }
  }

  /// After a send that failed: true when it is worth trying again. What init says meanwhile is taken in, and
  /// handed on in the next turn: two sides that only write would wait for each other for ever.
  bool wait_writable() {
    if (errno == EINTR) return true;
    if (errno != EAGAIN) return false;
    pollfd ready = {lifeline_.native_handle(), POLLIN | POLLOUT, 0};
    if (::poll(&ready, 1, -1) < 0) return errno == EINTR;
    if ((ready.revents & POLLIN) == 0) return true;
    char bytes[8192];
    const ssize_t count = ::recv(ready.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
    decoder_.append({bytes, static_cast<std::size_t>(count)});
    asio::post(lifeline_.get_executor(), still_here_.only([this] { deliver(); }));
    return true;
  }

  void read_on() {
    const auto take = [this](const boost::system::error_code& error, std::size_t count) {
      if (error == asio::error::operation_aborted) return;
      decoder_.append({bytes_, error ? 0 : count});
      deliver();
      if (!error)
        read_on();
      else if (!ended_)
        on_end();
    };
    lifeline_.async_read_some(asio::buffer(bytes_), still_here_.only(take));
  }

  void deliver() {
    while (auto frame = decoder_.next()) {
      if (const auto* contained = std::get_if<ContainedFrame>(&*frame)) on_contained(*contained);
      ended_ = ended_ || std::holds_alternative<EmptiedFrame>(*frame);
      listener_.on_frame(*frame);
    }
  }

  void on_contained(const ContainedFrame& contained) {
    cgroup_ = contained.cgroup;
    const auto level = parse_containment_level(contained.level);
    if (!required_ || (level && *level >= *required_)) return;
    throw Error(ErrorKind::host,
                "containment " + std::string(to_string(*required_)) + " is required, and only " +
                    contained.level + " is possible here: " + contained.reason,
                "leave out --require_containment, or require a level that is possible");
  }

  /// The lifeline ended. What init was holding is ours now, because fleetrun is the next subreaper.
  void on_end() {
    wait_for(init_);
    ended_ = true;
    while (::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) {
      kill_everything_below(cgroup_);
      ::poll(nullptr, 0, 1);
    }
    if (!cgroup_.empty()) remove_cgroup(cgroup_);
    listener_.on_lost();
  }

  pid_t init_;
  asio::posix::stream_descriptor lifeline_;
  std::string directory_;
  std::optional<ContainmentLevel> required_;
  PodListener& listener_;
  FrameDecoder decoder_;
  std::string cgroup_;
  bool ended_ = false;
  std::string pending_;
  std::vector<UniqueFd> pending_descriptors_;  // copies: the caller may close its own
  bool flush_posted_ = false;
  char bytes_[8192];
  StillHere still_here_;  // the loop of a job of several hosts goes on without us
};

}  // namespace

std::unique_ptr<Pod> start_pod(asio::io_context& loop, const InitSettings& settings, PodListener& listener) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  check_errno(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair",
              "starting fleetrun-init", ErrorKind::spawn);
  UniqueFd ours(ends[0]);
  UniqueFd theirs(::fcntl(ends[1], F_DUPFD_CLOEXEC, kInitLifeline + 1));
  ::close(ends[1]);
  check_errno(theirs.value(), "fcntl", "starting fleetrun-init", ErrorKind::spawn);

  boost::system::error_code error;
  process::default_process_launcher launcher;
  const std::vector<std::string> arguments = {std::to_string(kInitLifeline), std::to_string(::getpid())};
  process::process init = launcher(loop.get_executor(), error, process::filesystem::path(settings.program),
                                   arguments, InitChild{theirs.value()});
  if (error)
    throw Error(ErrorKind::spawn,
                "fleetrun-init could not be started: " + settings.program + ": " + error.message(),
                error.value() == EMFILE || error.value() == ENFILE
                    ? "raise the limit on open files (ulimit -Hn), or start fewer processes"
                : error.value() == EAGAIN
                    ? "raise the limit on processes (ulimit -u, or that of the container), or start fewer"
                    : "install fleetrun again");
  const pid_t pid = init.id();
  init.detach();
  return std::make_unique<InitPod>(loop, pid, std::move(ours), settings.setup, listener);
}

std::string find_init(const std::string& fleetrun_directory) {
  const std::string path = fleetrun_directory + "/fleetrun-init";
  if (::access(path.c_str(), X_OK) == 0) return path;
  throw Error(ErrorKind::spawn, "fleetrun-init is not beside fleetrun in " + fleetrun_directory,
              "install fleetrun again");
}

}  // namespace fleetrun::launcher
