// read() first tries to read; only when nothing is there it waits for whatever comes first: data, a line on
// standard error, the end of a process, or a request to stop.
#include "dataset/pipes/pipe_command.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/write_all.h"

namespace fleetrun::dataset {
namespace {

using std::chrono::steady_clock;

constexpr int kPipeBytes = 1 << 20;

/// Makes the pipe large: a small one costs a context switch per 64 KiB.
/// Refused above the user's quota; then it stays small.
void widen(const Pipe& pipe) {
  ::fcntl(pipe.reader.value(), F_SETPIPE_SZ, kPipeBytes);
}

std::string name_of(const PipeStage& stage) {
  switch (stage.kind) {
    case PipeStage::Kind::download:
      return "the download command '" + printable(stage.text) + "'";
    case PipeStage::Kind::upload:
      return "the upload command '" + printable(stage.text) + "'";
    case PipeStage::Kind::unpack:
      return stage.text;
    case PipeStage::Kind::command:
      break;
  }
  return "the pipe command '" + printable(stage.text) + "'";
}

bool unpacks(const std::string& command) {
  return std::ranges::any_of(std::array{"zcat", "gunzip", "gzip", "zstd"},
                             [&](const char* program) { return command.find(program) != std::string::npos; });
}

std::string hint_for(const PipeStage& stage, const ExitReason& reason, bool is_unpacked) {
  if (stage.kind == PipeStage::Kind::unpack)
    return "a file whose name says how it is packed must be a whole file of that kind";
  if (stage.kind == PipeStage::Kind::command && is_unpacked && unpacks(stage.text))
    return "a file whose name ends in .gz or .zst is unpacked before the command gets it: leave that out";
  if (reason == ExitReason{ExitReason::Kind::exited, 127, false})
    return "127 means that a program was not found: check its name, and the PATH of this process";
  if (reason == ExitReason{ExitReason::Kind::exited, 126, false})
    return "126 means that a program could not be run: is it executable?";
  return {};
}

bool ended_by_closed_pipe(const ExitReason& reason) {
  return reason.kind == ExitReason::Kind::signaled ? reason.code == SIGPIPE : reason.code == 128 + SIGPIPE;
}

}  // namespace

void LastLines::add(std::string_view bytes) {
  constexpr std::size_t limit = 2048;
  tail_.append(bytes);
  if (tail_.size() > 8 * limit) tail_.erase(0, tail_.size() - limit);
}

std::string LastLines::report() const {
  constexpr std::size_t limit = 2048;
  constexpr std::size_t max_lines = 10;
  std::string_view text = tail_;
  if (text.size() > limit) text.remove_prefix(text.size() - limit);
  const std::vector<std::string> lines = split(text.substr(0, text.find_last_not_of('\n') + 1), '\n');
  std::string report;
  for (std::size_t i = lines.size() > max_lines ? lines.size() - max_lines : 0; i < lines.size(); ++i)
    report.append("\n    ").append(printable(lines[i], 400));
  return report.empty() ? report : "; its standard error ends:" + report;
}

PipeCommand::PipeCommand(PipeCommandOptions options, UniqueFd input)
    : options_(std::move(options)), processes_(options_.environment) {
  Pipe errors = make_pipe();
  ::fcntl(errors.reader.value(), F_SETFL, O_RDONLY | O_NONBLOCK);
  for (const PipeStage& stage : options_.stages) {
    Pipe output = make_pipe();
    widen(output);
    processes_.start(stage.argv, {input.value(), output.writer.value(), errors.writer.value()});
    input = std::move(output.reader);
  }
  output_ = std::move(input);
  ::fcntl(output_.value(), F_SETFL, O_RDONLY | O_NONBLOCK);
  reasons_.resize(processes_.size());
  errors_ = std::move(errors.reader);
}

std::size_t PipeCommand::read(std::span<char> room) {
  std::optional<steady_clock::time_point> silent_since;
  for (;;) {
    if (output_) {
      const std::optional<std::size_t> bytes = read_now(room);
      if (bytes && *bytes > 0) return *bytes;
      if (bytes) output_.reset();
    }
    if (!output_ && processes_.all_reaped()) break;
    if (!silent_since) silent_since = steady_clock::now();
    wait(*silent_since);
  }
  pass_on_errors();
  processes_.kill();
  judge();
  return 0;
}

/// What is there now: bytes, 0 at the end, nullopt when nothing is.
std::optional<std::size_t> PipeCommand::read_now(std::span<char> room) {
  for (;;) {
    const ssize_t bytes = ::read(output_.value(), room.data(), room.size());
    if (bytes >= 0) return static_cast<std::size_t>(bytes);
    if (errno == EAGAIN) return std::nullopt;
    if (errno != EINTR)
      throw Error(ErrorKind::data,
                  options_.file + ": cannot read from the pipe: " + std::generic_category().message(errno));
  }
}

void PipeCommand::wait(steady_clock::time_point silent_since) {
  std::vector<pollfd> watched = {
      {options_.stop_fd, POLLIN, 0}, {errors_.value(), POLLIN, 0}, {output_.value(), POLLIN, 0}};
  for (std::size_t i = 0; i < processes_.size(); ++i) watched.push_back({processes_.exit_fd(i), POLLIN, 0});
  int timeout = -1;
  if (processes_.all_reaped()) {  // only what they left behind can write
    timeout = static_cast<int>(options_.linger.count());
  } else if (options_.timeout.count() > 0) {
    const auto left = silent_since + options_.timeout - steady_clock::now();
    timeout = static_cast<int>(
        std::max<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), 0));
  }
  const int ready = ::poll(watched.data(), watched.size(), timeout);
  if (ready == 0) fail_silent();
  if (watched[0].revents != 0) throw StopRequested();
  if (watched[1].revents != 0) pass_on_errors();
  for (std::size_t i = 0; i < processes_.size(); ++i)
    if (watched[3 + i].revents != 0) reasons_[i] = processes_.reap(i);
}

void PipeCommand::fail_silent() {
  const bool ended = processes_.all_reaped();
  processes_.kill();
  const PipeStage& last = options_.stages.back();
  if (!ended)
    fail(ErrorKind::timeout, last,
         "has printed nothing for " + std::to_string(options_.timeout.count()) + " ms, the pipe_timeout",
         "see why it waits, or allow it more by pipe_timeout");
  judge();
  fail(ErrorKind::data, last,
       "ended, but a background process that it left kept its output open for " +
           std::to_string(options_.linger.count()) + " ms without writing",
       "end the command with `wait`, or send the background process's output elsewhere");
}

void PipeCommand::pass_on_errors() {
  char bytes[4096];
  while (errors_) {
    const ssize_t count = ::read(errors_.value(), bytes, sizeof bytes);
    if (count == -1 && errno == EINTR) continue;
    if (count == -1 && errno == EAGAIN) return;
    if (count <= 0) {
      errors_.reset();
      return;
    }
    const std::string_view text(bytes, static_cast<std::size_t>(count));
    write_all(STDERR_FILENO, text);
    last_errors_.add(text);
  }
}

/// The first stage that failed. One that wrote to a later stage which had read enough has not.
void PipeCommand::judge() const {
  for (std::size_t i = 0; i < reasons_.size(); ++i) {
    const ExitReason& reason = reasons_[i];
    const PipeStage& stage = options_.stages[i];
    const bool not_needed = i + 1 < reasons_.size() && ended_by_closed_pipe(reason);
    const bool inner_not_needed =  // by the shell's own pipeline
        stage.kind != PipeStage::Kind::unpack &&
        reason == ExitReason{ExitReason::Kind::exited, 128 + SIGPIPE, false};
    if (reason.ok() || not_needed || inner_not_needed) continue;
    const bool is_unpacked = i > 0 && options_.stages[i - 1].kind == PipeStage::Kind::unpack;
    fail(ErrorKind::data, stage, to_string(reason), hint_for(stage, reason, is_unpacked));
  }
}

void PipeCommand::fail(ErrorKind kind, const PipeStage& stage, const std::string& what,
                       const std::string& hint) const {
  throw Error(kind, options_.file + ": " + name_of(stage) + " " + what + last_errors_.report(), hint);
}

}  // namespace fleetrun::dataset
