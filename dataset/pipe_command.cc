// read() first tries to read; only when nothing is there it waits for whatever comes first: data, a line on
// standard error, the end of a process, or the wish to stop.
#include "dataset/pipe_command.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

constexpr int kPipeBytes = 1 << 20;

/// Makes the reading end non-blocking, and the pipe large: a small one costs a context switch per 64 KiB.
void prepare(const Pipe& pipe) {
  ::fcntl(pipe.reader.value(), F_SETFL, O_RDONLY | O_NONBLOCK);
  ::fcntl(pipe.reader.value(), F_SETPIPE_SZ,
          kPipeBytes);  // refused above the user's quota; then it stays small
}

void write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written == -1 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
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
  constexpr std::size_t most_lines = 10;
  std::string_view text = tail_;
  if (text.size() > limit) text.remove_prefix(text.size() - limit);
  const std::vector<std::string> lines = split(text.substr(0, text.find_last_not_of('\n') + 1), '\n');
  std::string report;
  for (std::size_t i = lines.size() > most_lines ? lines.size() - most_lines : 0; i < lines.size(); ++i)
    report.append("\n    ").append(printable(lines[i], 400));
  return report.empty() ? report : "; its standard error ends:" + report;
}

PipeCommand::PipeCommand(PipeCommandOptions options, UniqueFd input)
    : options_(std::move(options)), processes_(options_.environment) {
  Pipe output = make_pipe();
  Pipe errors = make_pipe();
  prepare(output);
  ::fcntl(errors.reader.value(), F_SETFL, O_RDONLY | O_NONBLOCK);
  if (options_.unpack) {
    Pipe unpacked;
    const bool last = options_.command.empty();
    if (!last) unpacked = make_pipe();
    unpacker_ = processes_.start(
        {"gzip", "-dc"},
        {input.value(), last ? output.writer.value() : unpacked.writer.value(), errors.writer.value()});
    if (!last) input = std::move(unpacked.reader);
  }
  if (!options_.command.empty())
    command_ = processes_.start({"bash", "-o", "pipefail", "-c", options_.command},
                                {input.value(), output.writer.value(), errors.writer.value()});
  reasons_.resize(processes_.size());
  output_ = std::move(output.reader);
  errors_ = std::move(errors.reader);
}

std::size_t PipeCommand::read(std::span<char> room) {
  for (;;) {
    if (output_) {
      const std::optional<std::size_t> bytes = read_now(room);
      if (bytes && *bytes > 0) return *bytes;
      if (bytes) output_.reset();
    }
    if (!output_ && processes_.all_reaped()) break;
    wait();
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

void PipeCommand::wait() {
  std::vector<pollfd> watched = {
      {options_.stop_fd, POLLIN, 0}, {errors_.value(), POLLIN, 0}, {output_.value(), POLLIN, 0}};
  for (std::size_t i = 0; i < processes_.size(); ++i) watched.push_back({processes_.exit_fd(i), POLLIN, 0});
  // After the command has ended only what it left behind can write.
  const int timeout = processes_.all_reaped() ? static_cast<int>(options_.linger.count()) : -1;
  const int ready = ::poll(watched.data(), watched.size(), timeout);
  if (ready == 0) {
    processes_.kill();
    judge();
    fail("ended, but a background process that it left kept its output open for " +
             std::to_string(options_.linger.count()) + " ms without writing",
         "end the command with `wait`, or send the background process's output elsewhere");
  }
  if (watched[0].revents != 0) throw StopRequested();
  if (watched[1].revents != 0) pass_on_errors();
  for (std::size_t i = 0; i < processes_.size(); ++i)
    if (watched[3 + i].revents != 0) reasons_[i] = processes_.reap(i);
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

void PipeCommand::judge() const {
  const bool command_ok = !command_ || reasons_[*command_].ok() ||
                          reasons_[*command_] == ExitReason{ExitReason::Kind::exited, 128 + SIGPIPE, false};
  if (unpacker_) {
    const ExitReason& reason = reasons_[*unpacker_];
    const bool not_needed = command_ && ended_by_closed_pipe(reason);
    if (!reason.ok() && !not_needed)
      throw Error(ErrorKind::data, options_.file + ": gzip " + to_string(reason) + last_errors_.report(),
                  "a file whose name ends in .gz must be a whole gzip file");
  }
  if (command_ok) return;
  const ExitReason& reason = reasons_[*command_];
  std::string hint;
  if (reason.kind == ExitReason::Kind::exited && reason.code == 127)
    hint = "127 means that a program was not found: check its name, and the PATH of the trainer";
  if (reason.kind == ExitReason::Kind::exited && reason.code == 126)
    hint = "126 means that a program could not be run: is it executable?";
  fail(to_string(reason), hint);
}

void PipeCommand::fail(const std::string& what, const std::string& hint) const {
  throw Error(ErrorKind::data,
              options_.file + ": the pipe command '" + printable(options_.command) + "' " + what +
                  last_errors_.report(),
              hint);
}

}  // namespace fleetrun::dataset
