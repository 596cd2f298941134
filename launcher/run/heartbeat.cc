#include "launcher/run/heartbeat.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kLongestLine = 64;
constexpr int kMaxBlocks = 64;  // at once: a process that writes without end does not keep the loop

std::optional<double> parse_seconds(std::string_view text) noexcept {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0 && seconds < 1e9))
    return std::nullopt;
  return seconds;
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
  constexpr std::string_view kStep = "step ";
  if (!line.starts_with(kStep) || line.size() > kLongestLine) return;
  line.remove_prefix(kStep.size());
  const std::size_t blank = line.find(' ');
  const auto step = parse_integer(line.substr(0, blank));
  if (!step) return;
  heartbeat_.step = *step;
  heartbeat_.work_seconds =
      blank == std::string_view::npos ? std::nullopt : parse_seconds(line.substr(blank + 1));
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
