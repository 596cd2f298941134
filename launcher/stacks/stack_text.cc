// What gdb and py-spy print, read. Both are made for people, so whatever is not understood is passed over.
//
//   gdb     Thread 2 (Thread 0x7f… (LWP 23610) "name"):
//           #0  0x000055… in worker (a=0x0) at /tmp/h.c:4
//           #1  0x00007f… in clone3 () from /lib/…/libc.so.6
//   py-spy  Thread 23649 (idle): "MainThread"
//               train (d.py:6)
#include <algorithm>
#include <array>
#include <cctype>

#include "launcher/stacks/stack_groups.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kMaxFrames = 200;

template <class Use>
void each_line(std::string_view text, Use&& use) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    use(line);
    begin = end + 1;
  }
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// "name" of a thread line's last quoted word.
std::string quoted_name(std::string_view line) {
  const std::size_t last = line.rfind('"');
  const std::size_t first = last == line.npos || last == 0 ? line.npos : line.rfind('"', last - 1);
  return first == line.npos ? std::string() : std::string(line.substr(first + 1, last - first - 1));
}

/// "__GI___clock_nanosleep" → "clock_nanosleep": the name that a program calls it by.
std::string_view public_name(std::string_view name) {
  if (name.starts_with("__GI_")) name.remove_prefix(5);
  const std::size_t first = name.find_first_not_of('_');
  return first != name.npos && first >= 2 ? name.substr(first) : name;
}

/// The name before "(arguments)" at the end of `text`.
/// Arguments may hold brackets, also unequal ones in strings.
std::string_view without_arguments(std::string_view text) {
  if (!text.ends_with(')')) return text;
  const std::size_t open = text.find(" (");
  // A C++ name may hold " (" in a type, as in std::function<void (int)>::operator() (this=…): the arguments
  // begin at the first one outside of <>.
  int depth = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && depth > 0) --depth;
    if (depth == 0 && text[i] == ' ' && text[i + 1] == '(') return text.substr(0, i);
  }
  return open == text.npos ? text : text.substr(0, open);
}

bool is_system_library(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"libc.so",    "libpthread", "ld-linux",
                                                      "libstdc++.", "libgomp.",   "linux-vdso"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view known) { return name.starts_with(known); });
}

/// Debian's C library is built in its own folder, and says so in its debugging lines.
bool is_system_source(std::string_view path) {
  constexpr std::array<std::string_view, 4> kFolders = {"../sysdeps/", "./nptl/", "../csu/", "./"};
  return std::any_of(kFolders.begin(), kFolders.end(),
                     [&](std::string_view known) { return path.starts_with(known); });
}

StackFrame gdb_frame(std::string_view line) {
  line = trimmed(line.substr(std::min(line.find(' '), line.size())));  // "#12 "
  const std::size_t in = line.starts_with("0x") ? line.find(" in ") : line.npos;
  if (in != line.npos) line.remove_prefix(in + 4);
  StackFrame frame;
  const std::size_t at = line.rfind(" at "), from = line.rfind(" from ");
  if (at != line.npos && line.substr(0, at).ends_with(')')) {
    frame.where = base_name(line.substr(at + 4));
    frame.system = is_system_source(line.substr(at + 4));
    line = line.substr(0, at);
  } else if (from != line.npos && line.substr(0, from).ends_with(')')) {
    frame.where = base_name(line.substr(from + 6));
    frame.system = is_system_library(frame.where);
    line = line.substr(0, from);
  }
  frame.function = public_name(trimmed(without_arguments(line)));
  return frame;
}

bool is_python_library(std::string_view file) {
  constexpr std::array<std::string_view, 12> kFiles = {
      "threading.py", "queue.py",       "selectors.py",  "socket.py",  "subprocess.py",  "connection.py",
      "ssl.py",       "base_events.py", "popen_fork.py", "process.py", "synchronize.py", "queues.py"};
  const std::string_view name = base_name(file.substr(0, file.rfind(':')));
  return std::find(kFiles.begin(), kFiles.end(), name) != kFiles.end();
}

/// "Thread.run (threading.py:975)"
StackFrame py_spy_frame(std::string_view line) {
  StackFrame frame;
  const std::size_t open = line.rfind(" (");
  if (open == line.npos || !line.ends_with(')')) {
    frame.function = line;
    return frame;
  }
  frame.function = line.substr(0, open);
  const std::string_view where = line.substr(open + 2, line.size() - open - 3);
  frame.where = base_name(where);
  frame.system = is_python_library(where);
  return frame;
}

void add_frame(std::vector<ThreadStack>& threads, StackFrame frame) {
  if (threads.empty()) threads.emplace_back();
  std::vector<StackFrame>& frames = threads.back().frames;
  if (frame.function.empty() || frames.size() >= kMaxFrames) return;
  if (frame.function == "??" && !frames.empty() && frames.back() == frame)
    return;  // one of them says as much
  frames.push_back(std::move(frame));
}

void drop_empty(std::vector<ThreadStack>& threads) {
  std::erase_if(threads, [](const ThreadStack& thread) { return thread.frames.empty(); });
}

}  // namespace

std::vector<ThreadStack> parse_gdb_stacks(std::string_view text) {
  std::vector<ThreadStack> threads;
  bool begun = false;
  each_line(text, [&](std::string_view line) {
    if (line.starts_with("Thread ") && line.ends_with(':')) {
      begun = true;
      threads.push_back({quoted_name(line), {}});
    } else if (begun && line.starts_with('#') && line.size() > 1 &&
               std::isdigit(static_cast<unsigned char>(line[1]))) {
      add_frame(threads, gdb_frame(line));
    }
  });
  drop_empty(threads);
  std::reverse(threads.begin(),
               threads.end());  // gdb counts threads from the main one, and prints the last first
  return threads;
}

std::vector<ThreadStack> parse_py_spy_stacks(std::string_view text) {
  std::vector<ThreadStack> threads;
  bool begun = false;
  each_line(text, [&](std::string_view line) {
    if (line.starts_with("Thread ")) {
      begun = true;
      threads.push_back({quoted_name(line), {}});
    } else if (begun && line.starts_with("    ") && !line.starts_with("     ")) {
      add_frame(threads, py_spy_frame(trimmed(line)));
    }
  });
  drop_empty(threads);
  const auto main = std::find_if(threads.begin(), threads.end(),
                                 [](const ThreadStack& thread) { return thread.name == "MainThread"; });
  if (main != threads.end()) std::rotate(threads.begin(), main, main + 1);
  return threads;
}

}  // namespace fleetrun::launcher
