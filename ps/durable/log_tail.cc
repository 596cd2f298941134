#include "ps/durable/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "ps/durable/log_format.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kAtOnce = std::size_t{4} << 20;

}  // namespace

LogTail::LogTail(std::string directory, std::uint64_t first)
    : directory_(std::move(directory)), segment_(first), path_(log_path(directory_, first)) {}

// False: it is not there yet, or not all of its beginning.
bool LogTail::open_segment() {
  if (file_) return true;
  UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) return false;
  check_errno(file.value(), "open", path_);
  SegmentHead head;
  const ssize_t size = ::pread(file.value(), &head, sizeof head, 0);
  check_errno(size < 0 ? -1 : 0, "read", path_);
  if (static_cast<std::size_t>(size) < sizeof head) return false;
  if (head != SegmentHead{.segment = segment_})
    throw Error(ErrorKind::data,
                path_ + ": it does not begin as segment " + std::to_string(segment_) + " of a server's log");
  file_ = std::move(file);
  at_ = sizeof head;
  return true;
}

// False: there is nothing more for now.
bool LogTail::read_more() {
  struct stat status {};
  check_errno(::fstat(file_.value(), &status), "fstat", path_);
  const std::size_t had = bytes_.size();
  const std::uint64_t seen = at_ + had, there = static_cast<std::uint64_t>(status.st_size);
  if (there <= seen) return false;
  const std::size_t more = std::min<std::uint64_t>(there - seen, kAtOnce);
  bytes_.resize(had + more);
  ssize_t size = -1;
  do {
    size = ::pread(file_.value(), bytes_.data() + had, more, static_cast<off_t>(seen));
  } while (size < 0 && errno == EINTR);
  bytes_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  check_errno(size < 0 ? -1 : 0, "read", path_);
  return size > 0;
}

std::uint64_t LogTail::take_whole(const std::function<void(LogRecord&)>& take) {
  std::uint64_t records = 0;
  std::size_t done = 0;
  while (const auto head = whole_record(std::span(bytes_).subspan(done), segment_, at_ + done)) {
    LogRecord record{head->kind, Reader(std::span(bytes_).subspan(done + sizeof *head, head->length))};
    done += sizeof *head + head->length;
    if (record.kind == Follows::kKind) continue;
    take(record);
    ++records;
  }
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(done));
  at_ += done;
  return records;
}

std::uint64_t LogTail::read(const std::function<void(LogRecord&)>& take) {
  std::uint64_t records = 0;
  for (;;) {
    const std::string next = log_path(directory_, segment_ + 1);
    // Looked for first: once another segment is there, nothing comes to this one any more.
    const bool is_whole = std::filesystem::exists(next);
    if (!open_segment()) {
      if (!is_whole) return records;
      throw Error(ErrorKind::data, path_ + " is not there, and " + next + " is");
    }
    while (read_more()) records += take_whole(take);
    if (!is_whole) return records;
    if (!bytes_.empty())
      throw Error(ErrorKind::data, path_ + ": it ends within a record, at byte " + std::to_string(at_));
    file_.reset();
    path_ = next;
    ++segment_;
    at_ = 0;
  }
}

}  // namespace fleetrun::ps
