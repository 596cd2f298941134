#include "launcher/stacks/stack_groups.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kFramesShown = 12;
constexpr std::size_t kThreadsShown = 4;
constexpr std::string_view kStoppedBySignal = "stopped by a signal";

using Frames = std::vector<StackFrame>;

bool has(const Frames& frames, std::initializer_list<std::string_view> functions, std::size_t depth) {
  return std::any_of(
      frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(std::min(depth, frames.size())),
      [&](const StackFrame& frame) {
        return std::find(functions.begin(), functions.end(), frame.function) != functions.end();
      });
}

/// What is known of a process at best, and whether it only waits for a child.
const std::vector<ThreadStack>& best_of(const ProcessStacks& process) {
  return process.threads.empty() ? process.kernel : process.threads;
}

bool waits_for_child(const ProcessStacks& process) {
  if (!process.kernel.empty() && has(process.kernel.front().frames, {kStoppedBySignal}, 1)) return false;
  const auto waits = [](const std::vector<ThreadStack>& threads) {
    return !threads.empty() && has(threads.front().frames,
                                   {"wait4", "waitpid", "waitid", "wait", "wait4()", "waitid()", "do_wait",
                                    "Popen._try_wait", "Popen._wait", "_try_wait", "waitchld"},
                                   8);
  };
  return waits(process.kernel) || waits(process.threads);
}

/// For each process of the job the one that stands for it.
std::vector<const ProcessStacks*> representatives(const std::vector<ProcessStacks>& processes) {
  std::map<std::size_t, const ProcessStacks*> chosen;
  for (const ProcessStacks& process : processes) {
    const ProcessStacks*& current = chosen[process.index];
    const bool better = current == nullptr || best_of(*current).empty() ||
                        (waits_for_child(*current) && !best_of(process).empty() && !waits_for_child(process));
    if (better) current = &process;
  }
  std::vector<const ProcessStacks*> list;
  for (const auto& [index, process] : chosen) list.push_back(process);
  return list;
}

std::string key_of(const Frames& frames) {
  std::string key;
  for (const StackFrame& frame : frames) key += to_string(frame) + "\n";
  return key;
}

/// The stacks of all threads but the main one, each once.
std::string key_of_others(const std::vector<ThreadStack>& threads) {
  std::set<std::string> keys;
  for (std::size_t i = 1; i < threads.size(); ++i) keys.insert(key_of(threads[i].frames));
  std::string key;
  for (const std::string& one : keys) key += one + "\f";
  return key;
}

std::vector<ThreadGroup> group_threads(const std::vector<ThreadStack>& threads) {
  std::vector<ThreadGroup> groups;
  for (std::size_t i = 1; i < threads.size(); ++i) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const ThreadGroup& group) {
      return group.frames == threads[i].frames;
    });
    if (same != groups.end())
      ++same->count;
    else
      groups.push_back({1, threads[i].frames});
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const ThreadGroup& a, const ThreadGroup& b) { return a.count > b.count; });
  return groups;
}

/// Whether the processes were all read by the same tool: stacks of different ones cannot be compared.
bool comparable(const std::vector<const ProcessStacks*>& processes) {
  return std::all_of(processes.begin(), processes.end(), [&](const ProcessStacks* process) {
    return !process->threads.empty() && process->source == processes.front()->source;
  });
}

StackGroup make_group(const std::vector<const ProcessStacks*>& members) {
  StackGroup group;
  group.role = members.front()->role;
  const auto read = std::find_if(members.begin(), members.end(),
                                 [](const ProcessStacks* process) { return !process->threads.empty(); });
  const ProcessStacks& shown = read == members.end() ? *members.front() : **read;
  const std::vector<ThreadStack>& threads = best_of(shown);
  if (!threads.empty()) group.frames = threads.front().frames;
  group.others = group_threads(threads);
  group.source = shown.threads.empty() ? "/proc" : shown.source;
  for (const ProcessStacks* process : members) {
    group.indices.push_back(process->index);
    group.ranks.push_back(process->rank);
  }
  return group;
}

void group_role(const std::vector<const ProcessStacks*>& processes, StackReport& report) {
  const bool tools = comparable(processes);
  const auto threads_of = [&](const ProcessStacks* process) -> const std::vector<ThreadStack>& {
    return tools || process->kernel.empty() ? process->threads : process->kernel;
  };
  std::map<std::string, std::vector<const ProcessStacks*>> by_key;
  for (const ProcessStacks* process : processes) {
    const auto& threads = threads_of(process);
    by_key[threads.empty() ? "" : key_of(threads.front().frames)].push_back(process);
  }
  if (by_key.size() == 1) {
    by_key.clear();
    for (const ProcessStacks* process : processes)
      by_key[key_of_others(threads_of(process))].push_back(process);
  }
  std::vector<StackGroup> groups;
  for (const auto& [key, members] : by_key) groups.push_back(make_group(members));
  std::stable_sort(groups.begin(), groups.end(), [](const StackGroup& a, const StackGroup& b) {
    return a.indices.size() != b.indices.size() ? a.indices.size() > b.indices.size() : a.indices < b.indices;
  });
  const bool majority = 2 * groups.front().indices.size() > processes.size();
  for (std::size_t i = 1; majority && i < groups.size(); ++i)
    report.odd.insert(report.odd.end(), groups[i].indices.begin(), groups[i].indices.end());
  report.groups.insert(report.groups.end(), groups.begin(), groups.end());
}

/// {0, 1, 2, 3, 5} → "0-3,5"
std::string rank_list(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last == i + 1) last = i;  // "0,1", not "0-1"
    text += (text.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (last > i) text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

/// "trainer 2", "3 trainers (0,1,3)"
std::string who(const StackGroup& group) {
  if (group.ranks.size() == 1) return group.role + " " + std::to_string(group.ranks.front());
  return std::to_string(group.ranks.size()) + " " + group.role + "s (" + rank_list(group.ranks) + ")";
}

bool is_odd(const StackReport& report, const StackGroup& group) {
  return std::find(report.odd.begin(), report.odd.end(), group.indices.front()) != report.odd.end();
}

void append_frames(std::string& text, const Frames& frames, const std::string& indent) {
  for (std::size_t i = 0; i < frames.size() && i < kFramesShown; ++i)
    text += indent + to_string(frames[i]) + "\n";
  if (frames.size() > kFramesShown)
    text += indent + "… " + std::to_string(frames.size() - kFramesShown) + " more\n";
  if (frames.empty()) text += indent + "(no stack could be read)\n";
}

/// Each trouble once: "gdb: …" where all have it, else "trainer 1, trainer 2: gdb: …".
std::vector<std::string> notes_of(const std::vector<const ProcessStacks*>& processes) {
  std::map<std::string, std::vector<std::string>> by_trouble;
  for (const ProcessStacks* process : processes) {
    if (!process->trouble.empty())
      by_trouble[printable(process->trouble)].push_back(process->role + " " + std::to_string(process->rank));
  }
  std::vector<std::string> notes;
  for (const auto& [trouble, names] : by_trouble)
    notes.push_back(names.size() == processes.size() ? trouble : join(names, ", ") + ": " + trouble);
  return notes;
}

nlohmann::json frames_json(const Frames& frames) {
  nlohmann::json list = nlohmann::json::array();
  for (const StackFrame& frame : frames) list.push_back(printable(to_string(frame), 500));
  return list;
}

}  // namespace

std::string to_string(const StackFrame& frame) {
  return frame.where.empty() ? frame.function : frame.function + " (" + frame.where + ")";
}

StackReport group_stacks(const std::vector<ProcessStacks>& processes) {
  StackReport report;
  const auto chosen = representatives(processes);
  std::vector<std::string> roles;
  for (const ProcessStacks* process : chosen) {
    if (std::find(roles.begin(), roles.end(), process->role) == roles.end()) roles.push_back(process->role);
  }
  for (const std::string& role : roles) {
    std::vector<const ProcessStacks*> members;
    for (const ProcessStacks* process : chosen) {
      if (process->role == role) members.push_back(process);
    }
    group_role(members, report);
  }
  report.notes = notes_of(chosen);
  return report;
}

std::string place_of(const Frames& frames) {
  if (frames.empty()) return "an unknown place";
  // Through the library to the function that was called in it, and who called that.
  std::size_t caller = 0;
  while (caller < frames.size() && (frames[caller].system || (caller > 0 && frames[caller].function == "??")))
    ++caller;
  if (caller == 0) return to_string(frames.front());
  const std::string& called = frames[caller - 1].function;
  return caller == frames.size() ? called : called + ", called by " + to_string(frames[caller]);
}

std::string summary(const StackReport& report) {
  std::string text;
  for (const StackGroup& group : report.groups)
    text += (text.empty() ? "" : "; ") + who(group) + " in " + place_of(group.frames);
  return text;
}

std::string to_text(const StackReport& report) {
  std::string text;
  for (const StackGroup& group : report.groups) {
    text += who(group) + (is_odd(report, group) ? ", not where the others are" : "") + ":\n";
    append_frames(text, group.frames, "    ");
    for (std::size_t i = 0; i < group.others.size() && i < kThreadsShown; ++i) {
      const ThreadGroup& threads = group.others[i];
      text += "    and " + std::to_string(threads.count) +
              (threads.count == 1 ? " thread in " : " threads in ") + place_of(threads.frames) + "\n";
    }
    if (group.others.size() > kThreadsShown) text += "    and other threads\n";
  }
  for (const std::string& note : report.notes) text += "(" + note + ")\n";
  return text;
}

std::string to_json(const StackReport& report) {
  nlohmann::json groups = nlohmann::json::array();
  for (const StackGroup& group : report.groups) {
    nlohmann::json threads = nlohmann::json::array();
    for (const ThreadGroup& others : group.others)
      threads.push_back({{"count", others.count}, {"frames", frames_json(others.frames)}});
    groups.push_back({{"role", group.role},
                      {"ranks", group.ranks},
                      {"indices", group.indices},
                      {"source", group.source},
                      {"frames", frames_json(group.frames)},
                      {"threads", threads}});
  }
  return json_text(nlohmann::json{{"groups", groups}, {"odd", report.odd}, {"notes", report.notes}});
}

std::string all_stacks_text(const std::vector<ProcessStacks>& processes) {
  std::string text;
  const auto append = [&](const std::vector<ThreadStack>& threads, const std::string& source) {
    for (const ThreadStack& thread : threads) {
      text += "  thread " + thread.name + " (" + source + ")\n";
      for (const StackFrame& frame : thread.frames) text += "    " + to_string(frame) + "\n";
    }
  };
  for (const ProcessStacks& process : processes) {
    text += process.role + " " + std::to_string(process.rank) + (process.leader ? "" : ", below it") +
            ": pid " + std::to_string(process.pid) + ", " + process.program + "\n";
    append(process.threads, process.source);
    append(process.kernel, "/proc");
    if (!process.trouble.empty()) text += "  (" + process.trouble + ")\n";
  }
  return text;
}

}  // namespace fleetrun::launcher
