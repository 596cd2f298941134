// fleetrun-init: the process that holds a pod. Small, single-threaded, started by fleetrun, one per pod.
//
//   fleetrun-init LIFELINE PARENT     LIFELINE: descriptor of the socket to fleetrun; PARENT: fleetrun's pid
//
// It starts the processes that fleetrun describes, inherits and reaps every orphan below it, and reports
// exits in the order in which they happened. When the lifeline ends (fleetrun is gone, however it died) or it
// gets SIGTERM, it kills everything below it and repeats that until there is nothing left.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <exception>
#include <map>

#include "launcher/containment.h"
#include "launcher/init_protocol.h"
#include "launcher/init_start.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr int kRefused = 125;

std::int64_t monotonic_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class Init {
 public:
  Init(int lifeline, int signals)
      : lifeline_(lifeline),
        signals_(signals),
        null_(::open("/dev/null", O_RDWR | O_CLOEXEC)),
        events_(::epoll_create1(EPOLL_CLOEXEC)) {
    watch(lifeline_, kLifelineTag);
    watch(signals_, kSignalTag);
  }

  /// Returns when the pod is empty and fleetrun knows it, or is gone.
  void run() {
    while (!ending_) {
      epoll_event ready[64];
      const int count = ::epoll_wait(events_.value(), ready, 64, -1);
      // The kernel lists descriptors in the order in which they became ready: deaths are reported as they
      // happened.
      for (int i = 0; i < count; ++i) {
        if (ready[i].data.u64 < kLifelineTag) reap(static_cast<std::uint32_t>(ready[i].data.u64));
      }
      for (int i = 0; i < count; ++i) {
        if (ready[i].data.u64 == kSignalTag) on_signals();
        if (ready[i].data.u64 == kLifelineTag) on_lifeline();
      }
      flush();
    }
    kill_until_empty();
    remove_leftovers();
    send(EmptiedFrame{});
    flush();
  }

 private:
  static constexpr std::uint64_t kLifelineTag = std::uint64_t{1} << 32, kSignalTag = kLifelineTag + 1;

  struct Process {
    pid_t pid = -1;
    UniqueFd pidfd;
    ExecFault* fault = nullptr;
  };

  void watch(int fd, std::uint64_t tag) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = tag;
    ::epoll_ctl(events_.value(), EPOLL_CTL_ADD, fd, &event);
  }

  void on_signals() {
    signalfd_siginfo info[16];
    for (ssize_t got; (got = ::read(signals_, info, sizeof info)) > 0;) {
      const auto count = static_cast<std::size_t>(got) / sizeof info[0];
      for (std::size_t i = 0; i < count; ++i) {
        if (info[i].ssi_signo == SIGTERM) ending_ = true;
      }
    }
    reap_orphans();
  }

  void on_lifeline() {
    if (!receive()) {
      ending_ = true;
      return;
    }
    while (auto frame = decoder_.next()) {
      if (auto* setup = std::get_if<SetupFrame>(&*frame)) on_setup(std::move(*setup));
      if (auto* start = std::get_if<StartFrame>(&*frame)) on_start(*start);
      if (auto* signal = std::get_if<SignalFrame>(&*frame)) on_signal_frame(*signal);
      if (std::holds_alternative<FinishFrame>(*frame)) ending_ = true;
    }
  }

  /// Reads what there is, descriptors included. False at the end of the lifeline.
  bool receive() {
    char bytes[16384];
    alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
    iovec part = {bytes, sizeof bytes};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(lifeline_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
        descriptors_.emplace_back(fd);
      }
    }
    decoder_.append({bytes, static_cast<std::size_t>(got)});
    return got > 0;
  }

  void on_setup(SetupFrame setup) {
    setup_ = std::move(setup);
    cgroup_ = make_cgroup_leaf("fleetrun-" + setup_.pod_name + "-" + std::to_string(::getpid()));
    context_.cgroup_directory = cgroup_.directory ? cgroup_.directory.value() : -1;
    context_.open_files = setup_.open_files;
    send(ContainedFrame{cgroup_.path.empty() ? "subreaper" : "cgroup2", cgroup_.path});
  }

  void on_start(const StartFrame& spec) {
    const UniqueFd log = take_descriptor();
    const UniqueFd input = spec.has_stdin ? take_descriptor() : UniqueFd();
    StartedProcess started =
        start_process(spec, log.value(), input ? input.value() : null_.value(), context_);
    if (started.pid == -1) {
      const ExecFault fault = started.fault ? *started.fault : ExecFault{1, ENOMEM};
      send(FailedFrame{spec.index, exec_stage_name(fault.stage), fault.error});
      return;
    }
    if (started.pidfd) watch(started.pidfd.value(), spec.index);
    index_of_[started.pid] = spec.index;
    processes_[spec.index] = {started.pid, std::move(started.pidfd), started.fault};
    send(StartedFrame{spec.index, started.pid});
  }

  UniqueFd take_descriptor() {
    if (descriptors_.empty()) throw Error(ErrorKind::data, "a process was described without its descriptors");
    UniqueFd fd = std::move(descriptors_.front());
    descriptors_.pop_front();
    return fd;
  }

  /// Each process leads a session and a group of its own, so its pid names the group; not reaped, it cannot
  /// be reused.
  void on_signal_frame(const SignalFrame& signal) {
    for (const auto& [index, process] : processes_) {
      if (signal.index != kEveryProcess && signal.index != index) continue;
      if (::kill(-process.pid, signal.number) != 0)
        ::kill(process.pid, signal.number);  // not yet in its own group
      if (signal.resume && ::kill(-process.pid, SIGCONT) != 0) ::kill(process.pid, SIGCONT);
    }
  }

  void reap(std::uint32_t index) {
    const auto process = processes_.find(index);
    if (process == processes_.end()) return;
    int status = 0;
    if (::waitpid(process->second.pid, &status, WNOHANG) == process->second.pid) report_exit(index, status);
  }

  /// Orphans have no pidfd. A child of ours that is met here died a moment ago and is next in the epoll set,
  /// in order; without pidfds (an old kernel) it is reported from here.
  void reap_orphans() {
    for (;;) {
      siginfo_t info = {};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
      const auto known = index_of_.find(info.si_pid);
      if (known == index_of_.end())
        ::waitpid(info.si_pid, nullptr, WNOHANG);
      else if (ending_ || !processes_[known->second].pidfd)
        reap(known->second);
      else
        break;
    }
    ::raise(SIGCHLD);  // blocked, so it stays pending: look for orphans again after the next round
  }

  void report_exit(std::uint32_t index, int status) {
    const auto process = processes_.find(index);
    const ExecFault fault = *process->second.fault;
    ::munmap(process->second.fault, sizeof(ExecFault));
    index_of_.erase(process->second.pid);
    processes_.erase(process);
    if (fault.stage != 0)
      send(FailedFrame{index, exec_stage_name(fault.stage), fault.error});
    else
      send(ExitedFrame{index, status, monotonic_ns()});
  }

  void kill_until_empty() {
    ending_ = true;
    for (;;) {
      reap_everything();
      siginfo_t info = {};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD) break;
      kill_everything_below(cgroup_.path);
      pollfd death = {signals_, POLLIN, 0};
      ::poll(&death, 1, 20);
      signalfd_siginfo drained[16];
      while (::read(signals_, drained, sizeof drained) > 0) {
      }
    }
    if (!cgroup_.path.empty()) remove_cgroup(cgroup_.path);
  }

  void reap_everything() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto known = index_of_.find(pid);
      if (known != index_of_.end()) report_exit(known->second, status);
    }
  }

  void remove_leftovers() {
    for (const std::string& path : setup_.remove_files) ::unlink(path.c_str());
    for (const std::string& path : setup_.remove_directories) ::rmdir(path.c_str());
  }

  /// Frames are collected, so that a burst of them wakes fleetrun once.
  void send(const Frame& frame) { outgoing_.append(encode(frame)); }

  void flush() {
    for (std::size_t sent = 0; sent < outgoing_.size();) {
      const ssize_t count = ::send(lifeline_, outgoing_.data() + sent, outgoing_.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;  // fleetrun is gone; the end of the lifeline says so too
      sent += static_cast<std::size_t>(count);
    }
    outgoing_.clear();
  }

  int lifeline_;
  int signals_;
  UniqueFd null_;
  UniqueFd events_;
  const Environ environment_ = Environ::of_process();
  SetupFrame setup_;
  CgroupLeaf cgroup_;
  StartContext context_ = {
      .base_environment = environment_, .cgroup_directory = -1, .init_pid = ::getpid(), .open_files = 0};
  FrameDecoder decoder_;
  std::string outgoing_;
  std::deque<UniqueFd> descriptors_;
  std::map<std::uint32_t, Process> processes_;
  std::map<pid_t, std::uint32_t> index_of_;
  bool ending_ = false;
};

/// All signals are blocked and at their default: children inherit the defaults, and nothing interrupts a
/// system call.
int take_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t all, wanted;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::sigemptyset(&wanted);
  ::sigaddset(&wanted, SIGCHLD);
  ::sigaddset(&wanted, SIGTERM);
  return ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

int run(int argc, char** argv) {
  const auto lifeline = argc == 3 ? parse_integer(argv[1]) : std::nullopt;
  const auto parent = argc == 3 ? parse_integer(argv[2]) : std::nullopt;
  if (!lifeline || !parent || ::fcntl(static_cast<int>(*lifeline), F_SETFD, FD_CLOEXEC) != 0) {
    constexpr char kUsage[] = "fleetrun-init: error: it is started by fleetrun, not by hand\n";
    (void)!::write(2, kUsage, sizeof kUsage - 1);
    return kRefused;
  }
  const int signals = take_signals();
  ::setsid();  // out of the terminal's foreground group: Ctrl-C is for fleetrun to handle
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG,
          SIGTERM);  // not SIGKILL: init has to outlive fleetrun for as long as killing the pod takes
  if (::getppid() != static_cast<pid_t>(*parent)) return kRefused;
  Init(static_cast<int>(*lifeline), signals).run();
  return 0;
}

}  // namespace
}  // namespace fleetrun::launcher

int main(int argc, char** argv) {
  try {
    return fleetrun::launcher::run(argc, argv);
  } catch (const std::exception& error) {
    const std::string text = std::string("fleetrun-init: error: ") + error.what() + "\n";
    (void)!::write(2, text.data(), text.size());
    return fleetrun::launcher::kRefused;
  }
}
