// "cat" and "" need no process: the file is read here. A name that ends in ".gz" goes through gzip, in a
// process of its own, so that unpacking and parsing run side by side.
#include "dataset/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "dataset/pipe_command.h"
#include "runtime/base/error.h"
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

class FileSource : public ByteSource {
 public:
  FileSource(std::string file, UniqueFd fd) : file_(std::move(file)), fd_(std::move(fd)) {}

  std::size_t read(std::span<char> room) override {
    for (;;) {
      const ssize_t bytes = ::read(fd_.value(), room.data(), room.size());
      if (bytes >= 0) {
        offset_ += static_cast<std::uint64_t>(bytes);
        return static_cast<std::size_t>(bytes);
      }
      if (errno != EINTR)
        throw Error(ErrorKind::data,
                    file_ + ": read failed after " + std::to_string(offset_) + " bytes: " + reason_of(errno));
    }
  }

 private:
  std::string file_;
  UniqueFd fd_;
  std::uint64_t offset_ = 0;
};

/// `command` without blanks at either end; empty for a command that only copies.
std::string_view filter_of(std::string_view command) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = command.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  command = command.substr(first, command.find_last_not_of(blanks) - first + 1);
  return command == "cat" ? std::string_view() : command;
}

}  // namespace

std::unique_ptr<ByteSource> open_byte_source(const ByteSourceOptions& options) {
  std::string reason;
  UniqueFd fd = open_regular(options.file, reason);
  if (!fd) throw Error(ErrorKind::data, options.file + ": " + reason);
  ::posix_fadvise(fd.value(), 0, 0, POSIX_FADV_SEQUENTIAL);
  const std::string_view filter = filter_of(options.command);
  const bool packed = options.file.ends_with(".gz");
  if (filter.empty() && !packed) return std::make_unique<FileSource>(options.file, std::move(fd));
  return std::make_unique<PipeCommand>(PipeCommandOptions{.file = options.file,
                                                          .command = std::string(filter),
                                                          .unpack = packed,
                                                          .environment = options.environment,
                                                          .stop_fd = options.stop_fd,
                                                          .linger = options.linger},
                                       std::move(fd));
}

void check_files(const std::vector<std::string>& files) {
  std::string unreadable;
  std::size_t count = 0;
  for (const std::string& file : files) {
    std::string reason;
    if (open_regular(file, reason)) continue;
    unreadable.append(count++ == 0 ? "" : ", ").append(file).append(" (").append(reason).append(")");
  }
  if (count == 0) return;
  throw Error(ErrorKind::data,
              std::to_string(count) + " of " + std::to_string(files.size()) +
                  (files.size() == 1 ? " file" : " files") + " cannot be read: " + unreadable,
              "check the list given to set_filelist(); relative names start at the directory of the process");
}

}  // namespace fleetrun::dataset
