// A record is written with one writev, so that a process that is killed leaves a whole record
// or a beginning of one.
#include "ps/durable/write_log.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <utility>

#include "ps/base/directory_sync.h"
#include "ps/durable/log_format.h"
#include "runtime/base/own_file.h"

namespace fleetrun::ps {
namespace {

std::span<const std::byte> bytes_of(const auto& value) {
  return std::as_bytes(std::span(&value, 1));
}

void sync_segment(const std::string& path) {
  const UniqueFd file(check_errno(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open", path));
  check_errno(::fdatasync(file.value()), "fdatasync", path);
}

}  // namespace

std::string log_path(const std::string& directory, std::uint64_t segment) {
  std::array<char, 32> name;
  std::snprintf(name.data(), name.size(), "/log-%016" PRIx64, segment);
  return directory + name.data();
}

WriteLog::WriteLog(std::string directory, std::uint64_t segment, LogSync sync,
                   std::function<void(const Error&)> broken, DiskWatch* watch)
    : directory_(std::move(directory)), sync_(sync), broken_(std::move(broken)), watch_(watch) {
  std::error_code none;
  const auto before = std::filesystem::file_size(log_path(directory_, segment - 1), none);
  if (!none && sync_ == LogSync::power) sync_segment(log_path(directory_, segment - 1));
  begin_segment(segment, none ? 0 : before);
  if (sync_ == LogSync::power) thread_ = std::thread([this] { run(); });
}

WriteLog::~WriteLog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

// `before`: the bytes of the segment that it follows; 0: it follows none.
void WriteLog::begin_segment(std::uint64_t segment, std::uint64_t before) {
  path_ = log_path(directory_, segment);
  const int file = open_own(path_, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, Readers::owner);
  file_ = std::make_shared<UniqueFd>(check_errno(file, "open", path_));
  segment_ = segment;
  size_ = 0;
  durable_ = 0;
  const SegmentHead head{.segment = segment};
  const Follows follows{before, sync_ == LogSync::power ? before : 0};
  RecordHead record{.length = sizeof follows, .kind = Follows::kKind};
  record.checksum = crc32c(bytes_of(follows), checksum_of_head(record, segment, sizeof head));
  if (before == 0)
    write({bytes_of(head)}, sizeof head);
  else
    write({bytes_of(head), bytes_of(record), bytes_of(follows)},
          sizeof head + sizeof record + sizeof follows);
  if (sync_ == LogSync::process) return;
  sync_file();
  sync_directory(directory_);
}

void WriteLog::append(std::uint32_t kind, const BytePieces& payload) {
  const std::lock_guard lock(mutex_);
  const DiskWatch::Asking asking(watch_);
  std::uint64_t length = 0;
  for (const auto& piece : payload) length += piece.size();
  if (length > UINT32_MAX)
    throw Error(ErrorKind::data, "a log record of " + std::to_string(length) + " bytes");
  RecordHead head;
  head.length = static_cast<std::uint32_t>(length);
  head.kind = kind;
  // What the kernel has is safe from the end of the process.
  head.durable = sync_ == LogSync::process ? size_ : durable_;
  head.checksum = checksum_of_head(head, segment_, size_);
  for (const auto& piece : payload) head.checksum = crc32c(piece, head.checksum);
  BytePieces pieces{bytes_of(head)};
  pieces.insert(pieces.end(), payload.begin(), payload.end());
  write(std::move(pieces), sizeof head + length);
}

void WriteLog::write(BytePieces pieces, std::uint64_t size) {
  if (is_broken_) throw Error(ErrorKind::host, path_ + ": an earlier write to this log failed");
  std::uint64_t left = size;
  std::size_t next = 0;
  while (left > 0) {
    std::vector<iovec> parts;
    for (std::size_t i = next; i < pieces.size() && parts.size() < IOV_MAX; ++i)
      parts.push_back({const_cast<std::byte*>(pieces[i].data()), pieces[i].size()});
    ssize_t done = ::writev(file_->value(), parts.data(), static_cast<int>(parts.size()));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      const int error = errno;
      // Nothing of it stays; where that fails too, nothing may follow.
      if (::ftruncate(file_->value(), static_cast<off_t>(size_)) != 0) break_off("write", error);
      errno = error;
      check_errno(-1, "write", path_);
    }
    left -= static_cast<std::uint64_t>(done);
    while (done > 0 || (next < pieces.size() && pieces[next].empty())) {
      const auto step = std::min<std::size_t>(static_cast<std::size_t>(done), pieces[next].size());
      pieces[next] = pieces[next].subspan(step);
      done -= static_cast<ssize_t>(step);
      if (pieces[next].empty()) ++next;
    }
  }
  size_ += size;
}

// A file that failed to sync is never synced again: what it lost, it would not tell twice.
void WriteLog::sync_file() {
  if (::fdatasync(file_->value()) != 0) break_off("fdatasync", errno);
  durable_ = size_;
}

void WriteLog::break_off(const char* call, int error) {
  const bool is_first = !std::exchange(is_broken_, true);
  changed_.notify_all();
  try {
    errno = error;
    check_errno(-1, call, path_);
  } catch (const Error& reason) {
    if (is_first && broken_) broken_(reason);
    throw;
  }
}

void WriteLog::when_safe(std::function<void()> then) {
  if (sync_ == LogSync::process) return then();
  {
    const std::lock_guard lock(mutex_);
    if (!is_abandoned_) {
      waiting_.push_back(std::move(then));
      changed_.notify_all();
      return;
    }
  }
  then();
}

void WriteLog::abandon() {
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    is_abandoned_ = true;
    waiting.swap(waiting_);
  }
  for (const auto& then : waiting) then();
}

std::uint64_t WriteLog::rotate() {
  const std::lock_guard lock(mutex_);
  const DiskWatch::Asking asking(watch_);
  if (is_broken_) throw Error(ErrorKind::host, path_ + ": an earlier write to this log failed");
  if (sync_ == LogSync::power) sync_file();
  before_ = file_;
  begin_segment(segment_ + 1, size_);
  return segment_;
}

// Whoever appends meanwhile does not wait for the disk.
void WriteLog::sync_begun() {
  if (sync_ == LogSync::power) return;
  std::array<std::shared_ptr<UniqueFd>, 2> files;
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    files = {std::exchange(before_, nullptr), file_};
    path = path_;
  }
  for (const auto& file : files) {
    // The next checkpoint needs neither of them.
    if (file) check_errno(::fdatasync(file->value()), "fdatasync", path);
  }
  sync_directory(directory_);
}

void WriteLog::finish() {
  const std::lock_guard lock(mutex_);
  if (is_broken_) throw Error(ErrorKind::host, path_ + ": an earlier write to this log failed");
  if (sync_ == LogSync::power) sync_file();
}

std::uint64_t WriteLog::bytes() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

// Syncs for all that wait; those that come meanwhile wait for the next time.
void WriteLog::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || is_broken_ || !waiting_.empty(); });
    if (waiting_.empty() || is_broken_) return;
    auto waiting = std::exchange(waiting_, {});
    const std::shared_ptr<UniqueFd> file = file_;
    const std::uint64_t size = size_, segment = segment_;
    lock.unlock();
    bool failed = false;
    int error = 0;
    {
      const DiskWatch::Asking asking(watch_);
      failed = ::fdatasync(file->value()) != 0;
      error = errno;
    }
    lock.lock();
    if (failed || is_broken_) {
      std::ranges::move(waiting_, std::back_inserter(waiting));
      waiting_.swap(waiting);
      const bool is_late = is_abandoned_;
      try {
        if (failed) break_off("fdatasync", error);
      } catch (const Error&) {
        // It was told.
      }
      lock.unlock();
      if (is_late) abandon();
      return;
    }
    if (segment == segment_) durable_ = std::max(durable_, size);
    lock.unlock();
    for (const auto& then : waiting) then();
    lock.lock();
  }
}

}  // namespace fleetrun::ps
