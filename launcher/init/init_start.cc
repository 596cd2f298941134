#include "launcher/init/init_start.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace fleetrun::launcher {
namespace {

enum Stage : std::int32_t {
  kNone,
  kFork,
  kSession,
  kDescriptors,
  kCpus,
  kMemoryNodes,
  kDirectory,
  kExec,
};

/// A set of numbers as sched_setaffinity() and set_mempolicy() want it.
using Mask = std::vector<unsigned long>;

// Modes of set_mempolicy(), as in linux/mempolicy.h.
constexpr int kPreferOne = 1, kBind = 2, kPreferSeveral = 5;

struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* envp;
  const char* cwd;  // nullptr: stay
  int log_fd;
  int stdin_fd;
  bool controls_stdin;
  int* passed;  // what becomes the descriptors `numbers`
  const int* numbers;
  std::size_t passed_count;
  int above_numbers;  // no descriptor from here on is in `numbers`
  const Mask* cpus;
  const Mask* memory_nodes;
  std::size_t memory_node_count;
  pid_t init_pid;
  rlim_t open_files;
  StartSlot* slot;
};

[[noreturn]] void give_up(const ChildPlan& plan, Stage stage) noexcept {
  plan.slot->fault().error = errno;
  plan.slot->fault().stage = stage;
  ::_exit(127);
}

void place_descriptors(const ChildPlan& plan) noexcept {
  if (::dup2(plan.stdin_fd, 0) == -1 || ::dup2(plan.log_fd, 1) == -1 || ::dup2(plan.log_fd, 2) == -1)
    give_up(plan, kDescriptors);
  // Everything init opens is close-on-exec already, and it has closed what it inherited: to be quite sure.
  // Kernels before 5.11 lack it.
  ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
  // First out of the way of each other's numbers, then to them.
  for (std::size_t i = 0; i < plan.passed_count; ++i) {
    plan.passed[i] = ::fcntl(plan.passed[i], F_DUPFD_CLOEXEC, plan.above_numbers);
    if (plan.passed[i] == -1) give_up(plan, kDescriptors);
  }
  for (std::size_t i = 0; i < plan.passed_count; ++i) {
    if (::dup2(plan.passed[i], plan.numbers[i]) == -1) give_up(plan, kDescriptors);
  }
  rlimit files;
  if (plan.open_files != 0 && ::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = plan.open_files;
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) give_up(plan, kDescriptors);
  }
}

/// Memory of other nodes is taken when these have none left: a preference, since a bound process would be
/// killed there. A kernel without the call, or a container that forbids it, leaves the process as it is.
bool prefer_memory_nodes(const Mask& nodes, std::size_t count) noexcept {
  const unsigned long bits = nodes.size() * sizeof(unsigned long) * 8 + 1;
  long result = ::syscall(SYS_set_mempolicy, count == 1 ? kPreferOne : kPreferSeveral, nodes.data(), bits);
  if (result != 0 && errno == EINVAL && count > 1)  // before Linux 5.15
    result = ::syscall(SYS_set_mempolicy, kBind, nodes.data(), bits);
  return result == 0 || errno == EPERM || errno == ENOSYS;
}

/// Between clone and exec: system calls only.
[[noreturn]] void become_program(const ChildPlan& plan) noexcept {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(plan, kSession);
  if (::getppid() != plan.init_pid) ::_exit(127);  // init died before the line above
  if (::setsid() == -1) give_up(plan, kSession);
  place_descriptors(plan);
  if (plan.controls_stdin && ::ioctl(0, TIOCSCTTY, 0) != 0) give_up(plan, kSession);
  if (!plan.cpus->empty() &&
      ::syscall(SYS_sched_setaffinity, 0, plan.cpus->size() * sizeof(unsigned long), plan.cpus->data()) < 0)
    give_up(plan, kCpus);
  if (!plan.memory_nodes->empty() && !prefer_memory_nodes(*plan.memory_nodes, plan.memory_node_count))
    give_up(plan, kMemoryNodes);
  if (plan.cwd != nullptr && ::chdir(plan.cwd) != 0) give_up(plan, kDirectory);
  plan.slot->wait_at_gate();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(plan.program, plan.argv, plan.envp);
  give_up(plan, kExec);
}

pid_t clone_child(int cgroup_directory, int* pidfd) {
  clone_args args = {};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uintptr_t>(pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup_directory >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup_directory);
  }
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}

/// fork() with a pidfd, in the cgroup where the kernel allows it; what it refuses is not tried again.
pid_t fork_child(StartContext& context, UniqueFd& pidfd) {
  int fd = -1;
  pid_t pid = -1;
  if (context.cgroup_directory >= 0) {
    pid = clone_child(context.cgroup_directory, &fd);
    if (pid == -1 && errno != EAGAIN && errno != ENOMEM) context.cgroup_directory = -1;
  }
  if (pid == -1 && context.cgroup_directory < 0) pid = clone_child(-1, &fd);
  if (pid == -1 && (errno == ENOSYS || errno == EPERM || errno == EINVAL)) {
    pid = ::fork();
    if (pid > 0) fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  }
  if (pid > 0) pidfd.reset(fd);
  return pid;
}

/// A machine that is out of processes for a moment is asked again, for up to a third of a second.
pid_t fork_with_patience(StartContext& context, UniqueFd& pidfd) {
  timespec pause = {0, 10'000'000};
  for (int attempt = 0;; ++attempt) {
    const pid_t pid = fork_child(context, pidfd);
    if (pid != -1 || errno != EAGAIN || attempt == 5) return pid;
    ::nanosleep(&pause, nullptr);
    pause.tv_nsec *= 2;
  }
}

/// Numbers that no machine has are left to the kernel to refuse.
Mask mask_of(const std::vector<std::int32_t>& numbers) {
  constexpr int kBits = sizeof(unsigned long) * 8, kMax = 1 << 14;
  Mask mask;
  for (const std::int32_t number : numbers) {
    const auto bit = static_cast<std::size_t>(number < 0 ? kMax : std::min(number, kMax));
    mask.resize(std::max(mask.size(), bit / kBits + 1));
    mask[bit / kBits] |= 1ul << bit % kBits;
  }
  return mask;
}

/// execve() takes pointers to char that it does not write through.
char* pointer_to(const std::string& text) {
  return const_cast<char*>(text.c_str());
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(pointer_to(text));
  pointers.push_back(nullptr);
  return pointers;
}

std::string_view name_of(const std::string& entry) {
  return std::string_view(entry).substr(0, entry.find('='));
}

/// The entries of `base` changed by `changes`: "NAME=VALUE" sets and "NAME" removes, the last one of a name
/// counts. Points into both: a copy of every text for every start costs page faults,
/// since each fork protects init's memory.
std::vector<char*> merged_environment(const std::vector<std::string>& base,
                                      const std::vector<std::string>& changes) {
  std::vector<const std::string*> sorted;
  sorted.reserve(changes.size());
  for (const std::string& entry : changes) sorted.push_back(&entry);
  const auto by_name = [](const std::string* a, const std::string* b) { return name_of(*a) < name_of(*b); };
  std::stable_sort(sorted.begin(), sorted.end(), by_name);

  std::vector<char*> pointers;
  pointers.reserve(base.size() + changes.size() + 1);
  for (const std::string& entry : base) {
    if (!std::binary_search(sorted.begin(), sorted.end(), &entry, by_name))
      pointers.push_back(pointer_to(entry));
  }
  for (auto change = sorted.begin(); change != sorted.end(); ++change) {
    const bool last = change + 1 == sorted.end() || name_of(**change) != name_of(**(change + 1));
    if (last && (*change)->find('=') != std::string::npos) pointers.push_back(pointer_to(**change));
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

const char* exec_stage_name(std::int32_t stage) noexcept {
  constexpr const char* kNames[] = {"",     "fork",         "session",   "descriptors",
                                    "cpus", "memory nodes", "directory", "exec"};
  return stage >= kNone && stage <= kExec ? kNames[stage] : "";
}

StartSlot::StartSlot(StartSlot&& other) noexcept
    : owner_(other.owner_), shared_(std::exchange(other.shared_, nullptr)) {}

StartSlot& StartSlot::operator=(StartSlot&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(shared_, other.shared_);
  return *this;
}

StartSlot::~StartSlot() {
  if (shared_ != nullptr) owner_->free_.push_back(shared_);  // there is room: take() made it
}

StartSlots::~StartSlots() {
  for (StartSlot::Shared* block : blocks_) ::munmap(block, kPerBlock * sizeof(StartSlot::Shared));
}

std::optional<StartSlot> StartSlots::take() noexcept {
  if (free_.empty()) {
    void* block = ::mmap(nullptr, kPerBlock * sizeof(StartSlot::Shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return std::nullopt;
    auto* first = static_cast<StartSlot::Shared*>(block);
    blocks_.push_back(first);
    free_.reserve(blocks_.size() * kPerBlock);
    for (std::size_t i = kPerBlock; i > 0; --i) free_.push_back(first + i - 1);
  }
  StartSlot::Shared* place = free_.back();
  free_.pop_back();
  return StartSlot(*this, new (place) StartSlot::Shared());
}

void StartSlot::open_gate() noexcept {
  shared_->open.store(1);
  ::syscall(SYS_futex, &shared_->open, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void StartSlot::wait_at_gate() noexcept {
  while (shared_->open.load() == 0) ::syscall(SYS_futex, &shared_->open, FUTEX_WAIT, 0, nullptr, nullptr, 0);
}

StartedProcess start_process(const StartFrame& spec, const StartDescriptors& descriptors,
                             StartContext& context) {
  StartedProcess started;
  started.slot = context.slots.take();
  if (!started.slot) {
    started.fault = {kFork, errno};
    return started;
  }
  const std::vector<char*> argv = pointers_to(spec.argv);
  const std::vector<char*> envp = merged_environment(context.base_environment, spec.environment);
  const Mask cpus = mask_of(spec.cpus), memory_nodes = mask_of(spec.memory_nodes);
  std::vector<int> passed;
  for (const UniqueFd& fd : descriptors.passed) passed.push_back(fd.value());
  const auto highest = std::max_element(spec.passed.begin(), spec.passed.end());
  const ChildPlan plan = {.program = spec.program.c_str(),
                          .argv = argv.data(),
                          .envp = envp.data(),
                          .cwd = spec.cwd.empty() ? nullptr : spec.cwd.c_str(),
                          .log_fd = descriptors.log,
                          .stdin_fd = descriptors.input,
                          .controls_stdin = spec.controls_stdin,
                          .passed = passed.data(),
                          .numbers = spec.passed.data(),
                          .passed_count = passed.size(),
                          .above_numbers = highest == spec.passed.end() ? 3 : *highest + 1,
                          .cpus = &cpus,
                          .memory_nodes = &memory_nodes,
                          .memory_node_count = spec.memory_nodes.size(),
                          .init_pid = context.init_pid,
                          .open_files = context.open_files,
                          .slot = &*started.slot};
  started.pid = fork_with_patience(context, started.pidfd);
  if (started.pid == 0) become_program(plan);
  if (started.pid == -1) started.fault = {kFork, errno};
  return started;
}

}  // namespace fleetrun::launcher
