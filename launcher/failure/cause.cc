// A signal is named with its sender where that is known, a kill for want of memory only where one was
// counted.
#include "launcher/failure/cause.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "launcher/failure/evidence.h"

namespace fleetrun::launcher {
namespace {

constexpr std::uint64_t kFullBelow = 64 * 1024;  // a file system with less room than this is full
constexpr int kSaidWhy = 1;                      // of Python's sys.exit("why"), which prints that at last

std::string shown_group(const MemoryGroup& group) {
  std::string text = "cgroup " + group.path;
  std::string separator = ": ";
  const auto add = [&](const char* what, const std::optional<std::uint64_t>& bytes) {
    if (!bytes) return;
    text.append(separator).append(what).append(" ").append(shown_bytes(*bytes));
    separator = ", ";
  };
  add("limit", group.limit);
  add("peak", group.peak);
  add("in use", group.usage);
  return text;
}

/// The group whose limit was reached: the innermost one that came near its limit, else the tightest.
const MemoryGroup* limiting_group(const Evidence& evidence) {
  const MemoryGroup* tightest = nullptr;
  for (const MemoryGroup& group : evidence.groups) {
    if (!group.limit) continue;
    const std::uint64_t max = std::max(group.peak.value_or(0), group.usage.value_or(0));
    if (max >= *group.limit - *group.limit / 50) return &group;
    if (!tightest || *group.limit < *tightest->limit) tightest = &group;
  }
  return tightest;
}

void say_out_of_memory(const Evidence& evidence, Cause& cause) {
  const MemoryGroup* group = limiting_group(evidence);
  cause.kind = FailureKind::out_of_memory;
  cause.text +=
      ": out of memory, " + (group ? shown_group(*group) : std::string("the machine had none left"));
  cause.hint = group ? "raise that limit, start fewer processes here, or make their batches smaller"
                     : "start fewer processes here, or make their batches smaller";
}

void say_killed(const Evidence& evidence, Cause& cause) {
  if (evidence.oom_kills > 0) return say_out_of_memory(evidence, cause);
  cause.text += ", sender unknown; ";
  if (evidence.machine_oom_kills == 0)
    cause.text += "memory was not the reason: no out-of-memory kill was counted";
  else if (evidence.memory_counters)
    cause.text += "no out-of-memory kill was counted in its cgroup, though " +
                  std::to_string(evidence.machine_oom_kills) + " elsewhere on this machine";
  else
    cause.text +=
        "it is unknown whether memory was the reason: its cgroup shows no counters, and the machine "
        "counted " +
        std::to_string(evidence.machine_oom_kills) + " out-of-memory kills";
}

void say_bus_error(const Evidence& evidence, Cause& cause) {
  if (!evidence.shared_memory_total || !evidence.shared_memory_available) return;
  const std::string room = shown_bytes(*evidence.shared_memory_available) + " of " +
                           shown_bytes(*evidence.shared_memory_total) + " free";
  if (*evidence.shared_memory_available >= kFullBelow) {
    cause.detail += "/dev/shm has " + room + "\n";
    return;
  }
  cause.text += ": /dev/shm is full, " + room;
  cause.hint =
      "enlarge /dev/shm (docker run --shm-size), or use less of it: fewer or smaller loader processes";
}

/// What a signal says by itself.
std::string meaning_of(int number, const Evidence& evidence) {
  const auto limit = [](const std::optional<std::uint64_t>& value, const char* flag) {
    return value ? std::to_string(*value) + ", ulimit " + flag : std::string("one that it set itself");
  };
  switch (number) {
    case SIGPIPE:
      return "it wrote to a pipe or socket whose reader was gone";
    case SIGILL:
      return "an instruction that this processor does not have";
    case SIGXFSZ:
      return "a file grew beyond the limit (" + limit(evidence.file_size_limit, "-f") + ")";
    case SIGXCPU:
      return "it used more seconds of CPU than the limit (" + limit(evidence.cpu_seconds_limit, "-t") + ")";
    case SIGSYS:
      return "a system call that a filter forbids";
    default:
      return {};
  }
}

std::string hint_for(int number) {
  if (number == SIGILL) return "run a build that was made for this processor";
  if (number == SIGXFSZ) return "raise the limit (ulimit -f), or write smaller files";
  if (number == SIGXCPU) return "raise the limit (ulimit -t)";
  return {};
}

/// A SIGKILL or SIGTERM comes from outside: what the log says is then not why.
bool comes_from_inside(int number) {
  return number != SIGKILL && number != SIGTERM && number != SIGINT && number != SIGHUP && number != SIGSTOP;
}

/// What to do about a module that Python does not find, and that this package has or stands for.
std::string hint_for_module(const std::string& summary) {
  const auto is_missing = [&summary](const std::string& module) {
    const auto at = summary.find("No module named '" + module);
    const auto end = at + std::string("No module named '").size() + module.size();
    return at != std::string::npos && end < summary.size() && (summary[end] == '\'' || summary[end] == '.');
  };
  if (is_missing("paddle"))
    return "fleetrun --compat=paddle runs it without Paddle; or install Paddle for the script's Python";
  if (is_missing("fleetrun"))
    return "install the package for the script's Python (pip install .), or name another with --python; a "
           "file or folder named fleetrun beside the script stands in its way: rename it";
  return {};
}

void say_text(const FailureText& text, Cause& cause) {
  cause.text += ": " + text.summary;
  cause.signature = text.signature;
  if (!cause.hint.empty()) return;
  if (is_port_clash(text.summary))
    cause.hint = "another program has the port; give this job others, or end that program";
  else if (text.family == FailureFamily::library || text.summary.find(".so") != std::string::npos)
    cause.hint = "install the library, or add its directory to LD_LIBRARY_PATH";
  else if (text.out_of_memory)
    cause.hint = "make the batches smaller, or start fewer processes here";
  else
    cause.hint = hint_for_module(text.summary);
}

/// One that fleetrun stopped may have been dying: its log then ends with why.
void say_stopped(const Evidence& evidence, Cause& cause) {
  const bool dying = evidence.text && evidence.text->at_end && !evidence.text->consequence &&
                     evidence.text->family != FailureFamily::message;
  if (!dying) {
    cause.text += ", sent by fleetrun";
    return;
  }
  cause.text = "failed, and " + cause.text + ", sent by fleetrun, before it had ended";
  say_text(*evidence.text, cause);
}

void explain_signal(const Evidence& evidence, const ExitReason& reason, Cause& cause) {
  const int number = reason.code;
  if (evidence.sent_signal == number && evidence.oom_kills == 0) return say_stopped(evidence, cause);
  if (number == SIGKILL) say_killed(evidence, cause);
  if (number == SIGTERM) {
    cause.kind = FailureKind::preemption;
    cause.text += ", which fleetrun did not send; sender unknown";
  }
  if (number == SIGBUS) say_bus_error(evidence, cause);
  const std::string meaning = meaning_of(number, evidence);
  if (!meaning.empty()) cause.text += ": " + meaning;
  cause.hint += hint_for(number);
  if (evidence.text && comes_from_inside(number) && meaning.empty() && cause.hint.empty())
    say_text(*evidence.text, cause);
}

/// A program that cannot write what went wrong mostly fails for just that, and its last words are lost.
void say_full_log(const Evidence& evidence, Cause& cause) {
  const bool limited = evidence.file_size_limit.has_value();
  const std::string full = limited ? "its log has reached the limit of a file's size (" + evidence.log +
                                         ", " + shown_bytes(*evidence.file_size_limit) + ", ulimit -f)"
                                   : "the device of its log is full (" + evidence.log + ", " +
                                         shown_bytes(*evidence.log_device_available) + " of " +
                                         shown_bytes(*evidence.log_device_total) + " free)";
  if (evidence.text && evidence.text->at_end) {
    cause.detail += full + "\n";
    return;
  }
  cause.text += ": " + full + ", so its last words are missing there";
  cause.hint = limited ? "raise the limit (ulimit -f), or keep logs small with --log_cap"
                       : "make room there, or choose another --log_dir; --log_through keeps last words in "
                         "memory, and --log_cap keeps logs small";
}

void explain_exit(const Evidence& evidence, const ExitReason& reason, Cause& cause) {
  if (reason.code == kRequeueCode) {
    cause.kind = FailureKind::preemption;
    cause.text += ": it asks to be run again";
    return;
  }
  if (!reason.ok() && evidence.oom_kills > 0) {
    say_out_of_memory(evidence, cause);
    cause.text += "; the kernel killed a process beside it or below it";
    return;
  }
  if (!reason.ok() && evidence.text) say_text(*evidence.text, cause);
  if (!reason.ok() && (evidence.log_device_total || evidence.file_size_limit))
    say_full_log(evidence, cause);
  else if (reason.code == kSaidWhy && !evidence.last_line.empty())
    cause.text += "; its last line: " + evidence.last_line;
}

std::string facts(const Evidence& evidence, const Cause& cause) {
  std::string text = cause.detail;
  if (cause.kind == FailureKind::out_of_memory) {
    text += "out-of-memory kills counted: " + std::to_string(evidence.oom_kills) + " in its cgroup, " +
            std::to_string(evidence.machine_oom_kills) + " on this machine\n";
    for (const MemoryGroup& group : evidence.groups) {
      if (group.limit || &group == &evidence.groups.front()) text += shown_group(group) + "\n";
    }
  }
  const bool memory_matters = cause.kind == FailureKind::out_of_memory ||
                              cause.text.starts_with("was killed by SIGKILL") ||
                              (evidence.text && evidence.text->out_of_memory);
  if (memory_matters && evidence.peak_rss && *evidence.peak_rss > 0)
    text += "most memory that it had: " + shown_bytes(*evidence.peak_rss) + "\n";
  if (cause.text.starts_with("was killed by SIGKILL") && evidence.cpu_seconds_limit)
    text += "its limit of CPU time is " + std::to_string(*evidence.cpu_seconds_limit) +
            " s, and the kernel ends with SIGKILL what goes beyond\n";
  if (evidence.address_space_limit)
    text += "its limit of address space is " + shown_bytes(*evidence.address_space_limit) + " (ulimit -v)\n";
  if (!evidence.core.empty()) text += "core: " + evidence.core + "\n";
  return text;
}

}  // namespace

std::string shown_bytes(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.95 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
  return text;
}

Cause explain(const Evidence& evidence, const ExitReason& reason) {
  Cause cause;
  cause.text = to_string(reason);
  cause.signature = reason.kind == ExitReason::Kind::signaled ? signal_name(reason.code)
                                                              : "exit " + std::to_string(reason.code);
  if (evidence.hung) {
    cause.kind = FailureKind::hang;
    cause.text = "hung" + (evidence.hang_why.empty() ? "" : " (it " + evidence.hang_why + ")") + ", and " +
                 cause.text + (evidence.sent_signal == reason.code ? ", sent by fleetrun" : "");
    cause.signature = "hang";
  } else if (reason.kind == ExitReason::Kind::signaled) {
    explain_signal(evidence, reason, cause);
  } else {
    explain_exit(evidence, reason, cause);
  }
  cause.detail = facts(evidence, cause);
  if (evidence.text) cause.block = evidence.text->block;
  return cause;
}

Cause explain_start(const std::string& program, const std::string& stage, int error) {
  Cause cause;
  cause.kind = FailureKind::not_started;
  cause.text =
      "could not be started: " + program + ": " + std::generic_category().message(error) + " (" + stage + ")";
  cause.signature = "start " + stage + " " + std::to_string(error);
  if (stage == "exec" && error == ENOENT)
    cause.hint =
        "the file is there, so its #! line names an interpreter that is not (one from Windows ends in a CR, "
        "which dos2unix removes)";
  if (stage == "exec" && error == ENOEXEC) cause.hint = "give it a #! line, or run it with its interpreter";
  if (error == E2BIG) cause.hint = "shorten the arguments or the environment";
  if (stage == "fork")
    cause.hint = "raise the limit on processes (ulimit -u, or that of the container), or start fewer";
  return cause;
}

}  // namespace fleetrun::launcher
