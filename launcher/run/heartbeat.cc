#include "launcher/run/heartbeat.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kLongestLine = 1024;
constexpr std::size_t kMaxValues = 32, kLongestName = 64;
constexpr int kMaxBlocks = 64;  // at once: a process that writes without end does not keep the loop

/// NaN and infinities too: a loss may be one.
std::optional<double> parse_double(std::string_view text) noexcept {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> parse_seconds(std::string_view text) noexcept {
  const auto seconds = parse_double(text);
  return seconds && *seconds >= 0 && *seconds < 1e9 ? seconds : std::nullopt;
}

bool is_value_name(std::string_view text) noexcept {
  if (text.empty() || text.size() > kLongestName) return false;
  for (std::size_t size = 0; !text.empty(); text.remove_prefix(size)) {
    size = utf8_length(text);
    if (size == 0 || (size == 1 && (text.front() <= ' ' || text.front() == '\x7f'))) return false;
  }
  return true;
}

/// The end for the process, by opening the pipe once more for both directions: as long as the process has it
/// there is a reader. Without /proc the pipe's own end has to do.
UniqueFd end_that_reads_too(const UniqueFd& read_end, UniqueFd write_end) {
  const std::string path = "/proc/self/fd/" + std::to_string(read_end.value());
  UniqueFd both(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  return both ? std::move(both) : std::move(write_end);
}

}  // namespace

void HeartbeatParser::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (partial_.size() <= kLongestLine) partial_.append(piece.substr(0, kLongestLine + 1 - partial_.size()));
    ++heartbeat_.beats;
    if (end == std::string_view::npos) return;
    on_line(partial_);
    partial_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void HeartbeatParser::on_line(std::string_view line) {
  if (line.size() > kLongestLine) return;
  const std::vector<std::string> words = split(line, ' ');
  for (std::size_t i = 1; i < words.size(); ++i) on_value(words[i]);
  if (words.size() < 2 || words[0] != "step") return;
  const auto step = parse_integer(words[1]);
  if (!step) return;
  heartbeat_.step = *step;
  heartbeat_.work_seconds = words.size() > 2 ? parse_seconds(words[2]) : std::nullopt;
}

void HeartbeatParser::on_value(std::string_view word) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  if (equals == word.npos || !is_value_name(name)) return;
  const auto value = parse_double(word.substr(equals + 1));
  const auto known = heartbeat_.values.find(std::string(name));
  if (!value || (known == heartbeat_.values.end() && heartbeat_.values.size() == kMaxValues)) return;
  heartbeat_.values[std::string(name)] = *value;
}

int Heartbeats::open(std::size_t index) {
  Channel& channel = channels_.at(index);
  channel = {};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  channel.ours.reset(ends[0]);
  channel.theirs = end_that_reads_too(channel.ours, UniqueFd(ends[1]));
  return channel.theirs.value();
}

void Heartbeats::started(std::size_t index) {
  channels_.at(index).theirs.reset();
}

const Heartbeat& Heartbeats::read(std::size_t index) {
  Channel& channel = channels_.at(index);
  char block[4096];
  for (int i = 0; channel.ours && i < kMaxBlocks; ++i) {
    const ssize_t count = ::read(channel.ours.value(), block, sizeof block);
    if (count > 0)
      channel.parser.feed({block, static_cast<std::size_t>(count)});
    else if (count == 0 || errno != EINTR)
      break;
  }
  return channel.parser.heartbeat();
}

}  // namespace fleetrun::launcher
