// "cat" and "" need no process: the file is read here, by read() and not through a memory map: a map would
// save 3 % of the parser's time, and a file that shrinks would end the process by SIGBUS. What is packed is
// unpacked here too, by the libraries, which take less time than the programs gzip and zstd and their pipe. A
// thread of their own reads pipes and unpacks, so that the reader has its time for parsing.
#include "dataset/pipes/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "dataset/pipes/pipe_command.h"
#include "dataset/pipes/read_ahead.h"
#include "dataset/pipes/unpack.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::dataset {
namespace {

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

/// Opens a regular file; `reason` says why it is not possible. O_NONBLOCK keeps a FIFO from blocking the
/// open.
UniqueFd open_regular(const std::string& file, std::string& reason) {
  UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd || ::fstat(fd.value(), &status) == -1) {
    reason = reason_of(errno);
    return UniqueFd();
  }
  if (S_ISREG(status.st_mode)) return fd;
  reason = S_ISDIR(status.st_mode) ? "is a directory" : "is not a regular file";
  return UniqueFd();
}

/// A regular file, and how large it was when it was opened.
class OpenedFile {
 public:
  OpenedFile(std::string name, UniqueFd fd) : name_(std::move(name)), fd_(std::move(fd)) {
    struct stat status {};
    if (::fstat(fd_.value(), &status) == 0) {
      size_ = status.st_size;
      has_name_ = status.st_nlink > 0;
    }
  }

  const std::string& name() const noexcept { return name_; }
  int fd() const noexcept { return fd_.value(); }

  /// Throws: Error(data) when the file is not what it was,
  /// now that reading it ended at byte `offset` of `what`.
  void check(std::uint64_t offset, const char* what) const {
    struct stat status {};
    if (::fstat(fd_.value(), &status) == -1) fail(reason_of(errno), offset, what);
    if (status.st_size != size_)
      fail("had " + std::to_string(size_) + " bytes when it was opened and has " +
               std::to_string(status.st_size) + " now",
           offset, what);
    if (has_name_ && status.st_nlink == 0) fail("was deleted while it was read", offset, what);
  }

 private:
  [[noreturn]] void fail(const std::string& change, std::uint64_t offset, const char* what) const {
    throw Error(ErrorKind::data,
                name_ + ": " + change + "; reading ended at byte " + std::to_string(offset) + what,
                "write a new file under another name and rename it; do not change a file that is being read");
  }

  std::string name_;
  UniqueFd fd_;
  off_t size_ = 0;
  bool has_name_ = false;
};

class FileSource : public ByteSource {
 public:
  explicit FileSource(OpenedFile file) : file_(std::move(file)) {}

  std::size_t read(std::span<char> room) override {
    for (;;) {
      const ssize_t bytes = ::read(file_.fd(), room.data(), room.size());
      if (bytes == 0) file_.check(offset_, "");
      if (bytes >= 0) {
        offset_ += static_cast<std::uint64_t>(bytes);
        return static_cast<std::size_t>(bytes);
      }
      if (errno != EINTR)
        throw Error(ErrorKind::data, file_.name() + ": read failed after " + std::to_string(offset_) +
                                         " bytes: " + reason_of(errno));
    }
  }

 private:
  OpenedFile file_;
  std::uint64_t offset_ = 0;
};

/// A file that a command reads: looked at when the command has ended.
class PipedFile : public ByteSource {
 public:
  PipedFile(OpenedFile file, std::unique_ptr<ByteSource> output)
      : file_(std::move(file)), output_(std::move(output)) {}

  std::size_t read(std::span<char> room) override {
    const std::size_t bytes = output_->read(room);
    if (bytes == 0) file_.check(offset_, " of what the command printed");
    offset_ += bytes;
    return bytes;
  }

 private:
  OpenedFile file_;
  std::unique_ptr<ByteSource> output_;
  std::uint64_t offset_ = 0;
};

class WithoutMark : public ByteSource {
 public:
  explicit WithoutMark(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  std::size_t read(std::span<char> room) override {
    if (!is_begun_) begin();
    const std::size_t bytes = first_.copy(room.data(), room.size());
    first_.erase(0, bytes);
    return bytes + (bytes < room.size() ? read_more(room.subspan(bytes)) : 0);
  }

 private:
  std::size_t read_more(std::span<char> room) {
    const std::size_t bytes = has_ended_ ? 0 : source_->read(room);
    has_ended_ = bytes == 0;
    return bytes;
  }

  void begin() {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    std::array<char, mark.size()> room{};
    while (!has_ended_ && first_.size() < mark.size() && mark.starts_with(first_))
      first_.append(room.data(), read_more(std::span(room).first(mark.size() - first_.size())));
    if (first_ == mark) first_.clear();
    is_begun_ = true;
  }

  std::unique_ptr<ByteSource> source_;
  std::string first_;  // read, and not given yet
  bool is_begun_ = false, has_ended_ = false;
};

/// `command` without blanks at either end; empty for a command that only copies.
std::string_view filter_of(std::string_view command) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = command.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  command = command.substr(first, command.find_last_not_of(blanks) - first + 1);
  return command == "cat" ? std::string_view() : command;
}

OpenedFile open_file(const std::string& name) {
  std::string reason;
  UniqueFd fd = open_regular(name, reason);
  if (!fd) throw Error(ErrorKind::data, name + ": " + reason);
  ::posix_fadvise(fd.value(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return {name, std::move(fd)};
}

}  // namespace

std::string command_text(const PipeOptions& pipe) {
  if (pipe.argv.empty()) return std::string(filter_of(pipe.command));
  std::string text;
  for (const std::string& word : pipe.argv) text.append(text.empty() ? "" : " ").append(shell_quoted(word));
  return text;
}

std::unique_ptr<ByteSource> open_byte_source(const ByteSourceOptions& options) {
  const bool remote = is_remote(options.file);
  const std::string command = command_text(options.pipe);
  const auto packing = packing_of(options.file);
  std::vector<PipeStage> stages;
  if (remote)
    stages.push_back({PipeStage::Kind::download,
                      download_argv(options.pipe.remote, options.file, options.environment),
                      download_text(options.pipe.remote)});
  // A command gets what else is packed as it is: a script that reads such files has unpacked them itself.
  const std::string unpacker(command.empty() ? unpacker_of(options.file)
                             : packing       ? to_string(*packing)
                                             : "");
  if (!unpacker.empty()) stages.push_back({PipeStage::Kind::unpack, {unpacker, "-dc"}, unpacker});
  if (!command.empty()) {
    stages.push_back({PipeStage::Kind::command,
                      options.pipe.argv.empty()
                          ? std::vector<std::string>{"bash", "-o", "pipefail", "-c", command}
                          : options.pipe.argv,
                      command});
  }
  const bool unpack_here = packing && command.empty();
  const auto start = [&](UniqueFd input, int stop_fd) {
    return std::make_unique<PipeCommand>(PipeCommandOptions{.file = options.file,
                                                            .stages = stages,
                                                            .environment = options.environment,
                                                            .stop_fd = stop_fd,
                                                            .timeout = options.pipe.timeout,
                                                            .linger = options.pipe.linger},
                                         std::move(input));
  };
  const auto open = [&](int stop_fd) -> std::unique_ptr<ByteSource> {
    if (remote)
      return start(UniqueFd(check_errno(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open", "/dev/null",
                                        ErrorKind::spawn)),
                   stop_fd);
    OpenedFile file = open_file(options.file);
    if (stages.empty()) return std::make_unique<FileSource>(std::move(file));
    UniqueFd input(check_errno(::fcntl(file.fd(), F_DUPFD_CLOEXEC, 0), "fcntl", "cannot copy a descriptor"));
    return std::make_unique<PipedFile>(std::move(file), start(std::move(input), stop_fd));
  };
  const auto open_text = [&](int stop_fd) {
    return without_mark(unpack_here ? unpacked(open(stop_fd), *packing, options.file) : open(stop_fd));
  };
  if (stages.empty() && !unpack_here) return open_text(options.stop_fd);
  return std::make_unique<ReadAhead>(open_text, options.stop_fd);
}

std::unique_ptr<ByteSource> without_mark(std::unique_ptr<ByteSource> source) {
  return std::make_unique<WithoutMark>(std::move(source));
}

void check_files(const std::vector<std::string>& files) {
  std::string unreadable;
  std::size_t count = 0;
  for (const std::string& file : files) {
    std::string reason;
    if (is_remote(file) || open_regular(file, reason)) continue;
    unreadable.append(count++ == 0 ? "" : ", ").append(file).append(" (").append(reason).append(")");
  }
  if (count == 0) return;
  throw Error(ErrorKind::data,
              std::to_string(count) + " of " + std::to_string(files.size()) +
                  (files.size() == 1 ? " file" : " files") + " cannot be read: " + unreadable,
              "check the list given to set_filelist(); relative names start at the directory of the process");
}

}  // namespace fleetrun::dataset
