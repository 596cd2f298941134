// Boost.Process 1.81 (v2) starts fleetrun-init and waits for it; everything else goes over the lifeline.
//
// Known about this version: it has to be compiled in one file (src.hpp below); a child whose exec fails
// leaves through
// ::exit(), which would run our exit handlers in it, so an initializer leaves through _exit() first; it
// closes every descriptor but 0, 1, 2 and its whitelist in the child.
#define BOOST_PROCESS_V2_SEPARATE_COMPILATION
#include "launcher/process_spawner.h"

#include <errno.h>
#include <poll.h>
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

#include <cstring>
#include <system_error>

#include "launcher/containment.h"
#include "runtime/base/error.h"
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

class InitPod final : public Pod {
 public:
  InitPod(asio::io_context& loop, process::process init, UniqueFd lifeline, PodListener& listener)
      : init_(std::move(init)), lifeline_(loop, lifeline.release()), listener_(listener) {
    read_on();
  }

  ~InitPod() override {
    boost::system::error_code ignored;
    lifeline_.close(ignored);  // the order to kill everything and end
    if (ended_)
      init_.wait(ignored);
    else
      init_.detach();  // a process that SIGKILL does not end keeps init; neither keeps us
  }

  /// Frames of one turn of the loop leave together: one wake-up of init starts all processes.
  void send(const Frame& frame, const std::vector<int>& descriptors = {}) {
    if (pending_descriptors_.size() + descriptors.size() > kMostDescriptors) flush();
    pending_.append(encode(frame));
    pending_descriptors_.insert(pending_descriptors_.end(), descriptors.begin(), descriptors.end());
    if (std::exchange(flush_posted_, true)) return;
    asio::post(lifeline_.get_executor(), [this] {
      flush_posted_ = false;
      flush();
    });
  }

  void start(std::size_t index, const ProcessSpec& spec, int log_fd, int stdin_fd) override {
    StartFrame frame;
    frame.index = static_cast<std::uint32_t>(index);
    frame.program = spec.program;
    frame.argv = spec.argv;
    frame.environment = spec.environment.entries();
    frame.environment.insert(frame.environment.end(), spec.unset.begin(), spec.unset.end());
    frame.has_stdin = stdin_fd >= 0;
    std::vector<int> descriptors = {log_fd};
    if (stdin_fd >= 0) descriptors.push_back(stdin_fd);
    send(frame, descriptors);
  }

  void ask_to_stop(std::size_t index) override {
    send(SignalFrame{.index = static_cast<std::uint32_t>(index), .number = SIGTERM, .resume = true});
  }
  void kill() override { send(SignalFrame{.index = kEveryProcess, .number = SIGKILL, .resume = false}); }
  void finish() override { send(FinishFrame{}); }

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
    alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
    iovec part = {pending_.data(), pending_.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!pending_descriptors_.empty()) {
      const std::size_t length = pending_descriptors_.size() * sizeof(int);
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(length);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(length);
      std::memcpy(CMSG_DATA(header), pending_descriptors_.data(), length);
    }
    for (;;) {
      const ssize_t count = ::sendmsg(lifeline_.native_handle(), &message, MSG_NOSIGNAL);
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
    asio::post(lifeline_.get_executor(), [this] { deliver(); });
    return true;
  }

  void read_on() {
    lifeline_.async_read_some(asio::buffer(bytes_),
                              [this](const boost::system::error_code& error, std::size_t count) {
                                if (error == asio::error::operation_aborted) return;
                                decoder_.append({bytes_, error ? 0 : count});
                                deliver();
                                if (!error)
                                  read_on();
                                else if (!ended_)
                                  on_end();
                              });
  }

  void deliver() {
    while (auto frame = decoder_.next()) {
      if (const auto* contained = std::get_if<ContainedFrame>(&*frame)) cgroup_ = contained->cgroup;
      ended_ = ended_ || std::holds_alternative<EmptiedFrame>(*frame);
      listener_.on_frame(*frame);
    }
  }

  /// The lifeline ended. What init was holding is ours now, because fleetrun is the next subreaper.
  void on_end() {
    boost::system::error_code ignored;
    init_.wait(ignored);
    ended_ = true;
    while (::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) {
      kill_everything_below(cgroup_);
      ::poll(nullptr, 0, 1);
    }
    if (!cgroup_.empty()) remove_cgroup(cgroup_);
    listener_.on_lost();
  }

  process::process init_;
  asio::posix::stream_descriptor lifeline_;
  PodListener& listener_;
  FrameDecoder decoder_;
  std::string cgroup_;
  bool ended_ = false;
  std::string pending_;
  std::vector<int> pending_descriptors_;
  bool flush_posted_ = false;
  char bytes_[8192];
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
                "install fleetrun again");
  auto pod = std::make_unique<InitPod>(loop, std::move(init), std::move(ours), listener);
  pod->send(settings.setup);
  return pod;
}

std::string find_init(const std::string& fleetrun_directory) {
  for (const char* place : {"/fleetrun-init", "/../launcher/fleetrun-init"}) {
    const std::string path = fleetrun_directory + place;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  throw Error(ErrorKind::spawn, "fleetrun-init is not beside fleetrun in " + fleetrun_directory,
              "install fleetrun again");
}

}  // namespace fleetrun::launcher
