#include "runtime/trainer/heartbeat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "runtime/base/text.h"

namespace fleetrun::runtime {
namespace {

constexpr std::chrono::milliseconds kInterval{50};
constexpr std::size_t kLongestLine = 1024, kLongestName = 64;  // of fleetrun's

/// A pipe that does not block, as fleetrun makes them.
bool is_channel(int fd) noexcept {
  struct stat info = {};
  const int flags = ::fcntl(fd, F_GETFL);
  return flags != -1 && (flags & O_NONBLOCK) != 0 && (flags & O_ACCMODE) != O_RDONLY &&
         ::fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

void add_value(std::string& line, const std::string& name, double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  line += " " + name + "=" + text;
}

/// As launcher/run/heartbeat wants it: "AUC: " is AUC.
std::string value_name(std::string_view said) {
  std::string name;
  for (std::size_t size = 0; !said.empty(); said.remove_prefix(size)) {
    size = utf8_length(said);
    const bool holds =
        size > 1 || (size == 1 && said.front() > ' ' && said.front() != '=' && said.front() != '\x7f');
    size = std::max<std::size_t>(size, 1);
    if (name.size() + size > kLongestName) break;
    name += holds ? said.substr(0, size) : "_";
  }
  name.erase(name.find_last_not_of("_:") + 1);
  return name.empty() ? "_" : name;
}

}  // namespace

std::string report_lines(const TrainingEvent& event, double examples_per_second) {
  std::string line = "beat";
  add_value(line, "batch", static_cast<double>(event.batch));
  add_value(line, "examples_per_second", examples_per_second);
  for (const auto& [name, value] : event.values) {
    std::string word;
    add_value(word, value_name(name), value);
    if (line.size() - (line.rfind('\n') + 1) + word.size() > kLongestLine) line += "\nbeat";
    line += word;
  }
  return line + "\n";
}

Heartbeat::Heartbeat(const Environ& environ) {
  const auto number = parse_integer(environ.value_or("FLEETRUN_HEARTBEAT_FD", ""));
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return;
  if (is_channel(static_cast<int>(*number))) fd_ = static_cast<int>(*number);
}

void Heartbeat::beat() noexcept {
  if (fd_ < 0) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  auto due = due_.load(std::memory_order_relaxed);
  const auto next = std::chrono::duration_cast<std::chrono::steady_clock::duration>(now + kInterval).count();
  if (now.count() < due || !due_.compare_exchange_strong(due, next, std::memory_order_relaxed)) return;
  constexpr char kBeat[] = "beat\n";
  (void)!::write(fd_, kBeat, sizeof kBeat - 1);
}

void Heartbeat::trained(std::size_t examples) noexcept {
  examples_.fetch_add(examples, std::memory_order_relaxed);
  beat();
}

void Heartbeat::report(const TrainingEvent& event) noexcept {
  if (fd_ < 0) return;
  const auto now = std::chrono::steady_clock::now();
  const std::uint64_t examples = examples_.load(std::memory_order_relaxed);
  const double seconds = std::chrono::duration<double>(now - since_).count();
  const std::string line =
      report_lines(event, static_cast<double>(examples - reported_) / std::max(seconds, 1e-9));
  (void)!::write(fd_, line.data(), line.size());
  since_ = now;
  reported_ = examples;
}

}  // namespace fleetrun::runtime
