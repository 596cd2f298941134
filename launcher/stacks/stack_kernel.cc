#include "launcher/stacks/stack_kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kMaxThreads = 256;

struct SystemCall {
  long number;
  const char* name;
  bool of_descriptor;  // its first argument is one
};

// Calls in which processes wait. Newer architectures lack the older ones.
constexpr SystemCall kCalls[] = {
    {SYS_futex, "futex", false},
    {SYS_read, "read", true},
    {SYS_write, "write", true},
    {SYS_readv, "readv", true},
    {SYS_writev, "writev", true},
    {SYS_pread64, "pread64", true},
    {SYS_pwrite64, "pwrite64", true},
    {SYS_recvfrom, "recvfrom", true},
    {SYS_recvmsg, "recvmsg", true},
    {SYS_sendto, "sendto", true},
    {SYS_sendmsg, "sendmsg", true},
    {SYS_connect, "connect", true},
    {SYS_accept, "accept", true},
    {SYS_accept4, "accept4", true},
    {SYS_ppoll, "ppoll", false},
    {SYS_pselect6, "pselect6", false},
    {SYS_epoll_pwait, "epoll_pwait", false},
    {SYS_nanosleep, "nanosleep", false},
    {SYS_clock_nanosleep, "clock_nanosleep", false},
    {SYS_restart_syscall, "restart_syscall", false},
    {SYS_wait4, "wait4", false},
    {SYS_waitid, "waitid", false},
    {SYS_rt_sigsuspend, "rt_sigsuspend", false},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", false},
    {SYS_flock, "flock", true},
    {SYS_fcntl, "fcntl", true},
    {SYS_fsync, "fsync", true},
    {SYS_fdatasync, "fdatasync", true},
    {SYS_ioctl, "ioctl", true},
    {SYS_openat, "openat", false},
    {SYS_io_getevents, "io_getevents", false},
    {SYS_msgrcv, "msgrcv", false},
    {SYS_semtimedop, "semtimedop", false},
    {SYS_sched_yield, "sched_yield", false},
    {SYS_execve, "execve", false},
#ifdef SYS_poll
    {SYS_poll, "poll", false},
    {SYS_select, "select", false},
    {SYS_epoll_wait, "epoll_wait", false},
    {SYS_pause, "pause", false},
#endif
};

std::string read_whole(const std::string& path) {
  std::string text;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return text;
  char block[4096];
  for (ssize_t got; text.size() < 64 * 1024 && (got = ::read(fd.value(), block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(got));
  return text;
}

std::string without_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

/// "socket", "pipe", or a path: what a descriptor of the process is.
std::string descriptor_kind(const std::string& process, const std::string& argument) {
  if (!argument.starts_with("0x")) return {};
  const unsigned long number = std::strtoul(argument.c_str(), nullptr, 16);
  char target[512];
  const std::string path = process + "/fd/" + std::to_string(number);
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  if (length <= 0) return {};
  const std::string kind(target, static_cast<std::size_t>(length));
  return kind.starts_with('/') ? without_newline(kind) : kind.substr(0, kind.find(':'));
}

/// "[<0>] futex_wait_queue+0x60/0x90" for each line; what every system call passes through tells nothing.
void append_kernel_functions(const std::string& text, std::vector<StackFrame>& frames) {
  for (const std::string& line : split(text, '\n')) {
    const std::size_t begin = line.rfind(' ') == std::string::npos ? 0 : line.rfind(' ') + 1;
    const std::string function = line.substr(begin, line.find('+', begin) - begin);
    if (function.empty() || function.starts_with("do_syscall") || function.starts_with("entry_SYSCALL") ||
        function.starts_with("__x64_sys") || function.starts_with("__arm64_sys") ||
        function.starts_with("el0"))
      continue;
    frames.push_back({function, "kernel", true});
  }
}

char state_of(const std::string& stat) {
  const std::size_t name = stat.rfind(") ");
  return name == std::string::npos || name + 2 >= stat.size() ? '?' : stat[name + 2];
}

ThreadStack read_thread(const std::string& process, const std::string& thread) {
  ThreadStack stack;
  stack.name = without_newline(read_whole(thread + "/comm"));
  const char state = state_of(read_whole(thread + "/stat"));
  if (state == 'T') stack.frames.push_back({"stopped by a signal", "", true});
  if (state == 't') stack.frames.push_back({"stopped by a debugger", "", true});
  if (state == 'D') stack.frames.push_back({"uninterruptible", "", true});
  append_kernel_functions(read_whole(thread + "/stack"), stack.frames);
  const std::vector<std::string> call = split(without_newline(read_whole(thread + "/syscall")), ' ');
  const auto number = call.empty() ? std::nullopt : parse_integer(call[0]);
  if (number && *number >= 0) {
    StackFrame frame = {system_call_name(static_cast<long>(*number)) + "()", "", true};
    for (const SystemCall& known : kCalls) {
      if (known.number == *number && known.of_descriptor && call.size() > 1)
        frame.where = descriptor_kind(process, call[1]);
    }
    stack.frames.push_back(std::move(frame));
  } else if (const std::string place = read_whole(thread + "/wchan"); state != 'R' && place.size() > 1) {
    stack.frames.push_back({without_newline(place), "kernel", true});  // also where a tracer is not welcome
  } else if (state == 'R') {
    stack.frames.push_back({"computing", "", true});
  }
  if (stack.frames.empty()) stack.frames.push_back({"waiting", "", true});
  return stack;
}

}  // namespace

std::string system_call_name(long number) {
  for (const SystemCall& call : kCalls) {
    if (call.number == number) return call.name;
  }
  return "system call " + std::to_string(number);
}

std::vector<ThreadStack> read_kernel_stacks(pid_t pid, const std::string& proc) {
  const std::string process = proc + "/" + std::to_string(pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir((process + "/task").c_str()), ::closedir);
  std::vector<std::int64_t> ids;
  while (tasks) {
    const dirent* entry = ::readdir(tasks.get());
    if (entry == nullptr || ids.size() >= kMaxThreads) break;
    if (const auto id = parse_integer(entry->d_name)) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());
  const auto main = std::find(ids.begin(), ids.end(), pid);
  if (main != ids.end()) std::rotate(ids.begin(), main, main + 1);
  std::vector<ThreadStack> threads;
  for (const std::int64_t id : ids)
    threads.push_back(read_thread(process, process + "/task/" + std::to_string(id)));
  return threads;
}

std::string encode_kernel_stacks(pid_t pid, const std::vector<ThreadStack>& threads) {
  std::string text = "P " + std::to_string(pid) + "\n";
  for (const ThreadStack& thread : threads) {
    text += "T " + thread.name + "\n";
    for (const StackFrame& frame : thread.frames) text += "F " + frame.function + "\t" + frame.where + "\n";
  }
  return text;
}

std::map<pid_t, std::vector<ThreadStack>> decode_kernel_stacks(std::string_view text) {
  std::map<pid_t, std::vector<ThreadStack>> processes;
  std::vector<ThreadStack>* threads = nullptr;
  for (const std::string& line : split(text, '\n')) {
    if (line.size() < 2) continue;
    const std::string rest = line.substr(2);
    const auto pid = line[0] == 'P' ? parse_integer(rest) : std::nullopt;
    if (pid) threads = &processes[static_cast<pid_t>(*pid)];
    if (threads == nullptr) continue;
    if (line[0] == 'T') threads->push_back({rest, {}});
    const std::size_t tab = rest.find('\t');
    if (line[0] == 'F' && !threads->empty() && tab != std::string::npos)
      threads->back().frames.push_back({rest.substr(0, tab), rest.substr(tab + 1), true});
  }
  return processes;
}

}  // namespace fleetrun::launcher
