// fleetrun-init: the process that holds a pod. Small, single-threaded, started by fleetrun, one per pod.
//
//   fleetrun-init LIFELINE PARENT     LIFELINE: descriptor of the socket to fleetrun; PARENT: fleetrun's pid
//   fleetrun-init [OPTION]… -- COMMAND…     an init for one command, also as tini
//                                           or dumb-init: init_options.h
//
// When the lifeline ends (fleetrun is gone, however it died) or it gets SIGTERM twice, it kills everything
// below it and repeats that until there is nothing left: launcher/init/init_holder.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/init/containment.h"
#include "launcher/init/init_command.h"
#include "launcher/init/init_holder.h"
#include "launcher/init/init_lifeline.h"
#include "runtime/base/close_from.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr int kRefused = 125;

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

/// The first frame; nullopt when fleetrun is gone before it came.
std::optional<SetupFrame> await_setup(InitLifeline& lifeline) {
  for (;;) {
    if (auto frame = lifeline.next()) {
      if (auto* setup = std::get_if<SetupFrame>(&*frame)) return std::move(*setup);
      throw Error(ErrorKind::data, "fleetrun and fleetrun-init do not understand each other");
    }
    pollfd ready = {lifeline.socket(), POLLIN, 0};
    ::poll(&ready, 1, -1);
    if (!lifeline.receive()) return std::nullopt;
  }
}

/// From the highest level that is asked for down to the first that the kernel grants. Outer init of a pid
/// namespace (`inner` is set) makes the cgroup too, since it outlives inner.
struct Held {
  ContainmentLevel level = ContainmentLevel::subreaper;
  InitHolder::Means means;
  std::string reason;  // why the level is not higher
  pid_t inner = -1;
};

Held hold(const SetupFrame& setup) {
  Held held;
  const auto note = [&held](const std::string& refusal) {
    if (!refusal.empty()) held.reason += (held.reason.empty() ? "" : "; ") + refusal;
  };
  const auto spec = std::max(setup.containment, setup.required);  // nullopt, for the best, is below any level
  if (!setup.containment || spec > ContainmentLevel::subreaper) {
    held.means.cgroup = make_cgroup_leaf(setup.pod_name);
    if (!held.means.cgroup.path.empty()) held.level = ContainmentLevel::cgroup2;
  }
  if (spec == ContainmentLevel::pidns) {
    NamespaceAttempt attempt = enter_pid_namespace();
    held.inner = attempt.inner;
    held.means.pid_namespace = std::move(attempt.inside);
    if (held.means.pid_namespace) held.level = ContainmentLevel::pidns;
    note(attempt.refusal);
  }
  if (held.level < ContainmentLevel::cgroup2) note(held.means.cgroup.refusal);
  return held;
}

int hold_pod(InitLifeline& lifeline, int signals) {
  auto setup = await_setup(lifeline);
  if (!setup) return kRefused;
  const pid_t outermost = ::getpid();
  Held held = hold(*setup);
  if (held.inner != -1) {
    lifeline.abandon();  // its end is inner's to see
    const int status = await_inner_init(held.inner, signals);
    if (held.means.cgroup.path.empty()) return status;
    remove_cgroup(held.means.cgroup.path);
    remove_stale_cgroups(held.means.cgroup.path);
    return status;
  }
  lifeline.send(
      ContainedFrame{std::string(to_string(held.level)), held.means.cgroup.path, held.reason, outermost});
  if (setup->required && held.level < *setup->required) {
    lifeline.flush();
    if (!held.means.cgroup.path.empty()) remove_cgroup(held.means.cgroup.path);
    return kRefused;
  }
  const std::string cgroup = held.means.cgroup.path;
  const bool pids_are_the_hosts = !held.means.pid_namespace;
  InitHolder(lifeline, signals, std::move(*setup), std::move(held.means)).run();
  lifeline.abandon();  // fleetrun does not wait for what follows
  if (!cgroup.empty() && pids_are_the_hosts) remove_stale_cgroups(cgroup);
  return 0;
}

int run_command(InitDialect dialect, const std::vector<std::string>& argv) {
  const auto parsed = parse_init_options(dialect, argv, Environ::of_process());
  if (const auto* options = std::get_if<InitOptions>(&parsed)) return run_init_command(*options);
  const auto& answer = std::get<InitAnswer>(parsed);
  (void)!::write(answer.status == 0 ? STDOUT_FILENO : STDERR_FILENO, answer.text.data(), answer.text.size());
  return answer.status;
}

int run(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (const auto dialect = init_dialect(words)) return run_command(*dialect, words);
  const auto socket = argc == 3 ? parse_integer(argv[1]) : std::nullopt;
  const auto parent = argc == 3 ? parse_integer(argv[2]) : std::nullopt;
  if (!socket || !parent || ::fcntl(static_cast<int>(*socket), F_SETFD, FD_CLOEXEC) != 0) {
    constexpr char kUsage[] = "fleetrun-init: error: it is started by fleetrun, or with -- and a command\n";
    (void)!::write(2, kUsage, sizeof kUsage - 1);
    return kRefused;
  }
  close_from(static_cast<int>(*socket) + 1);  // what whoever started fleetrun has open, where Boost could not
  const int signals = take_signals();
  ::setsid();  // out of the terminal's foreground group: Ctrl-C is for fleetrun to handle
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG,
          SIGTERM);  // not SIGKILL: init has to outlive fleetrun for as long as killing the pod takes
  if (::getppid() != static_cast<pid_t>(*parent)) return kRefused;
  InitLifeline lifeline(static_cast<int>(*socket));
  return hold_pod(lifeline, signals);
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
