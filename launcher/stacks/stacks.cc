// Order: the list of processes, /proc for all of them in one go, then the tools, `at_once` at a time. What is
// not read when the time is up stays as /proc has it.
#include "launcher/stacks/stacks.h"

#include <signal.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "launcher/host/resource_usage.h"
#include "launcher/stacks/stack_kernel.h"
#include "launcher/stacks/stack_python.h"
#include "launcher/stacks/stack_tool.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/write_all.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kKernelDeadline{2'000};
constexpr const char* kNoTool = "gdb is not in PATH, so only system calls are known";

std::string find_program(const Environ& environment, const std::string& name) {
  for (const std::string& folder : split(environment.value_or("PATH", ""), ':')) {
    const std::string path = folder + "/" + name;
    if (folder.starts_with('/') && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

/// Of a process: the name of the file that it executes.
std::string program_of(pid_t pid) {
  char target[4096];
  const ssize_t length = ::readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), target, sizeof target);
  const std::string path(target, length > 0 ? static_cast<std::size_t>(length) : 0);
  return path.substr(path.rfind('/') + 1);
}

/// The descendants of `pid`, the busiest first.
std::vector<pid_t> descendants_of(pid_t pid, const std::vector<ProcStat>& all) {
  std::multimap<pid_t, const ProcStat*> children;
  for (const ProcStat& process : all) children.emplace(process.parent, &process);
  std::vector<const ProcStat*> found;
  std::vector<pid_t> to_visit = {pid};
  std::set<pid_t> seen = {pid};
  while (!to_visit.empty()) {
    const pid_t parent = to_visit.back();
    to_visit.pop_back();
    for (auto [child, end] = children.equal_range(parent); child != end; ++child) {
      if (!seen.insert(child->second->pid).second || child->second->state == 'Z') continue;
      found.push_back(child->second);
      to_visit.push_back(child->second->pid);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const ProcStat* a, const ProcStat* b) { return a->cpu_ticks > b->cpu_ticks; });
  std::vector<pid_t> pids;
  for (const ProcStat* process : found) pids.push_back(process->pid);
  return pids;
}

bool is_interpreter(const ProcessStacks& process) {
  return process.program.starts_with("python");
}

/// The line of a tool's output that says what was wrong.
std::string complaint_in(const std::string& output) {
  std::string last;
  for (const std::string& line : split(output, '\n')) {
    for (const char* word : {"not permitted", "enied", "rror", "ailed"}) {
      if (line.find(word) != std::string::npos) return line;
    }
    if (!line.empty()) last = line;
  }
  return last.empty() ? "no output" : last;
}

// In a process apart.

void print_frames(pid_t pid, int output) {
  try {
    write_all(output, read_python_stacks(pid));
  } catch (const Error& error) {
    write_all(output, std::string("error: ") + error.what());
  }
}

enum class Tool { py_spy, own, gdb };

const char* name_of(Tool tool) {
  return tool == Tool::py_spy ? "py-spy" : tool == Tool::gdb ? "gdb" : "fleetrun";
}

class ToolReading final : public StackReading {
 public:
  ToolReading(asio::io_context& loop, const std::vector<StackTarget>& targets, StackSettings settings,
              std::function<void(std::vector<ProcessStacks>)> on_done)
      : loop_(loop),
        settings_(std::move(settings)),
        on_done_(std::move(on_done)),
        py_spy_(find_program(settings_.environment, "py-spy")),
        gdb_(find_program(settings_.environment, "gdb")),
        deadline_(loop, settings_.deadline) {
    settle_environment();
    list(targets);
    deadline_.async_wait([this](const error_code& error) {
      if (!error) finish();
    });
    read_kernel();
  }

 private:
  struct Job {
    std::size_t process;
    Tool tool;
  };

  /// gdb has an interpreter inside, and neither tool should load what the job's processes are to load.
  void settle_environment() {
    for (const char* name : {"LD_PRELOAD", "PYTHONHOME", "PYTHONPATH", "DEBUGINFOD_URLS"})
      settings_.environment.erase(name);
    settings_.environment.set("LC_ALL", "C");
    environment_ = settings_.environment.entries();
  }

  void list(const std::vector<StackTarget>& targets) {
    const std::vector<ProcStat> all = read_processes();
    for (const StackTarget& target : targets) {
      std::vector<pid_t> pids = descendants_of(target.pid, all);
      pids.resize(std::min(pids.size(), settings_.max_descendants));
      pids.insert(pids.begin(), target.pid);
      for (const pid_t pid : pids) {
        ProcessStacks process;
        process.index = target.index;
        process.role = target.role;
        process.rank = target.rank;
        process.pid = pid;
        process.leader = pid == target.pid;
        process.program = program_of(pid);
        processes_.push_back(std::move(process));
      }
    }
    // Leaders first: where there is time for some of them only, those are worth more.
    for (const bool leaders : {true, false}) {
      for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (processes_[i].leader == leaders) plan_tool(i);
      }
    }
  }

  void plan_tool(std::size_t i) {
    if (is_interpreter(processes_[i]))
      waiting_.push_back({i, py_spy_.empty() ? Tool::own : Tool::py_spy});
    else if (!gdb_.empty())
      waiting_.push_back({i, Tool::gdb});
    else
      processes_[i].trouble = kNoTool;
  }

  void read_kernel() {
    const auto work = [this](int output) {
      for (const ProcessStacks& process : processes_)
        write_all(output, encode_kernel_stacks(process.pid, read_kernel_stacks(process.pid)));
    };
    const ToolLimits limits = {.deadline = std::min(settings_.deadline, kKernelDeadline),
                               .max_bytes = 16 << 20};
    kernel_ = run_apart(loop_, work, limits, [this](const std::string& output, bool) {
      auto stacks = decode_kernel_stacks(output);
      for (ProcessStacks& process : processes_) process.kernel = std::move(stacks[process.pid]);
      kernel_.reset();
      start_tools();
    });
  }

  void start_tools() {
    while (next_ < waiting_.size() && running_.size() < settings_.at_once) start_tool(waiting_[next_++]);
    if (running_.empty() && next_ == waiting_.size()) finish();
  }

  void start_tool(const Job& job) {
    const ToolLimits limits = {.deadline = settings_.tool_deadline, .max_bytes = settings_.max_bytes};
    const ToolDone on_done = [this, job](const std::string& text, bool in_time) {
      on_tool_done(job, text, in_time);
    };
    const pid_t pid = processes_[job.process].pid;
    try {
      running_[job.process] =
          job.tool == Tool::own
              ? run_apart(
                    loop_, [pid](int output) { print_frames(pid, output); }, limits, on_done)
              : run_tool(loop_, words_of(job.tool, pid), environment_, limits, on_done);
    } catch (const Error& error) {
      processes_[job.process].trouble = error.what();
    }
  }

  std::vector<std::string> words_of(Tool tool, pid_t pid) const {
    if (tool == Tool::py_spy) return {py_spy_, "dump", "--nonblocking", "--pid", std::to_string(pid)};
    return {gdb_,
            "-nx",
            "-batch",
            "-p",
            std::to_string(pid),
            "-ex",
            "set pagination off",
            "-ex",
            "set print frame-arguments none",
            "-ex",
            "set print entry-values no",
            "-ex",
            "thread apply all backtrace 100"};
  }

  void on_tool_done(const Job& job, const std::string& output, bool in_time) {
    running_.erase(job.process);
    ProcessStacks& process = processes_[job.process];
    process.threads = job.tool == Tool::gdb ? parse_gdb_stacks(output) : parse_py_spy_stacks(output);
    if (!process.threads.empty()) {
      process.source = name_of(job.tool);
      // gdb reads an interpreter where its own frames could not be read: that stays said.
      if (!is_interpreter(process)) process.trouble.clear();
    } else {
      process.trouble =
          std::string(name_of(job.tool)) + ": " + (in_time ? complaint_in(output) : "it took too long");
      if (job.tool == Tool::py_spy)
        waiting_.push_back({job.process, Tool::own});
      else if (job.tool == Tool::own && !gdb_.empty())
        waiting_.push_back({job.process, Tool::gdb});
    }
    start_tools();
  }

  void finish() {
    if (!on_done_) return;
    deadline_.cancel();
    for (const auto& [i, run] : running_) processes_[i].trouble = "reading took too long";
    for (; next_ < waiting_.size(); ++next_)
      processes_[waiting_[next_].process].trouble = "there was no time to read it";
    running_.clear();
    kernel_.reset();
    // Short-lived descendants that ended meanwhile are of no interest.
    std::erase_if(processes_, [](const ProcessStacks& process) {
      return !process.leader && process.threads.empty() && ::kill(process.pid, 0) != 0 && errno == ESRCH;
    });
    asio::post(loop_, [this, alive = std::weak_ptr<char>(alive_)] {
      if (!alive.lock()) return;
      const auto on_done = std::exchange(on_done_, nullptr);
      if (on_done) on_done(std::move(processes_));  // may destroy this
    });
  }

  asio::io_context& loop_;
  StackSettings settings_;
  std::function<void(std::vector<ProcessStacks>)> on_done_;
  std::string py_spy_, gdb_;
  std::vector<std::string> environment_;
  asio::steady_timer deadline_;
  std::vector<ProcessStacks> processes_;
  std::vector<Job> waiting_;
  std::size_t next_ = 0;
  std::map<std::size_t, std::unique_ptr<ToolRun>> running_;
  std::unique_ptr<ToolRun> kernel_;
  std::shared_ptr<char> alive_ =
      std::make_shared<char>();  // owned here alone: says whether `this` still lives
};

}  // namespace

std::unique_ptr<StackReading> read_stacks(asio::io_context& loop, std::vector<StackTarget> targets,
                                          StackSettings settings,
                                          std::function<void(std::vector<ProcessStacks>)> on_done) {
  return std::make_unique<ToolReading>(loop, targets, std::move(settings), std::move(on_done));
}

}  // namespace fleetrun::launcher
