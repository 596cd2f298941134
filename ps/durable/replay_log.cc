// Reading a log. A segment is read whole: it has as many bytes as a server writes between two checkpoints.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "ps/base/directory_sync.h"
#include "ps/durable/log_format.h"
#include "ps/durable/write_log.h"
#include "runtime/base/own_file.h"

namespace fleetrun::ps {
namespace {

// The numbers of the segments that are there, ascending.
std::vector<std::uint64_t> find_segments(const std::string& directory) {
  std::vector<std::uint64_t> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t segment = 0;
    if (std::sscanf(name.c_str(), "log-%16" SCNx64, &segment) == 1 &&
        entry.path().string() == log_path(directory, segment))
      out.push_back(segment);
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Segment {
 public:
  Segment(const std::string& directory, std::uint64_t number)
      : path_(log_path(directory, number)), number_(number), bytes_(read_file()) {}

  /// Returns where the whole records end; 0 where the segment does not begin as one.
  std::size_t replay(const std::function<void(LogRecord&)>& take, std::uint64_t& records) const {
    if (!has_head()) return 0;
    std::size_t at = sizeof(SegmentHead);
    while (const auto record = whole_record(std::span(bytes_).subspan(at), number_, at)) {
      LogRecord out{record->kind, Reader(std::span(bytes_).subspan(at + sizeof *record, record->length))};
      at += sizeof *record + record->length;
      if (out.kind == Follows::kKind) continue;
      take(out);
      ++records;
    }
    return at;
  }

  /// Whether it follows what is there of the segment before it, whose whole records end at `end`.
  bool follows(const Segment& before, std::size_t end) const {
    const auto said = has_head() ? read_follows() : std::nullopt;
    if (said && end < said->safe)
      before.fail(end, "its end is missing, and was safe when another segment was begun");
    if (!said && end < before.bytes_.size())
      before.fail(end, before.damage(end) + ", and another segment follows");
    return has_head() && (!said || end >= said->bytes);
  }

  /// What comes after `at` was never answered, or was lost with the host. Returns how many bytes that were.
  std::uint64_t cut_off(std::size_t at) const {
    if (at == bytes_.size() && at != 0) return 0;
    for (std::size_t after = at + 1; after + sizeof(RecordHead) <= bytes_.size(); ++after) {
      const auto record = whole_record(std::span(bytes_).subspan(after), number_, after);
      if (record && record->durable > at)
        fail(at, damage(at) + ", and it was safe when the record at byte " + std::to_string(after) +
                     " was written");
    }
    const UniqueFd file(check_errno(open_own(path_, O_WRONLY, Readers::owner), "open", path_));
    check_errno(::ftruncate(file.value(), static_cast<off_t>(at)), "truncate", path_);
    if (at == 0) {
      const SegmentHead head{.segment = number_};
      const bool whole = ::pwrite(file.value(), &head, sizeof head, 0) == sizeof head;
      check_errno(whole ? 0 : -1, "write", path_);
    }
    check_errno(::fdatasync(file.value()), "fdatasync", path_);
    return bytes_.size() - at;
  }

  bool has_head() const {
    SegmentHead head;
    if (bytes_.size() < sizeof head) return false;
    std::memcpy(&head, bytes_.data(), sizeof head);
    return head == SegmentHead{.segment = number_};
  }

  std::string damage(std::size_t at) const {
    return at == 0 ? "it does not begin as segment " + std::to_string(number_) + " of a server's log"
                   : "a record is damaged";
  }

  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw Error(ErrorKind::data, path_ + ": byte " + std::to_string(at) + ": " + what,
                "load the tables from a save, and start with an empty checkpoint directory");
  }

 private:
  std::optional<Follows> read_follows() const {
    constexpr std::size_t kAt = sizeof(SegmentHead);
    const auto record = whole_record(std::span(bytes_).subspan(kAt), number_, kAt);
    if (!record || record->kind != Follows::kKind || record->length != sizeof(Follows)) return std::nullopt;
    Follows out;
    std::memcpy(&out, bytes_.data() + kAt + sizeof *record, sizeof out);
    return out;
  }

  std::vector<std::byte> read_file() const {
    const UniqueFd file(check_errno(::open(path_.c_str(), O_RDONLY | O_CLOEXEC), "open", path_));
    std::vector<std::byte> out(std::filesystem::file_size(path_));
    std::size_t at = 0;
    while (at < out.size()) {
      const ssize_t done = ::read(file.value(), out.data() + at, out.size() - at);
      if (done < 0 && errno == EINTR) continue;
      check_errno(done < 0 ? -1 : 0, "read", path_);
      if (done == 0) break;
      at += static_cast<std::size_t>(done);
    }
    out.resize(at);
    return out;
  }

  std::string path_;
  std::uint64_t number_;
  std::vector<std::byte> bytes_;
};

// They go on from what was lost with the host. Returns how many bytes they had.
std::uint64_t remove_segments(const std::string& directory, std::span<const std::uint64_t> segments) {
  std::uint64_t bytes = 0;
  for (const std::uint64_t segment : segments) {
    bytes += std::filesystem::file_size(log_path(directory, segment));
    std::filesystem::remove(log_path(directory, segment));
  }
  sync_directory(directory);
  return bytes;
}

}  // namespace

ReplayedLog replay_log(const std::string& directory, std::uint64_t first,
                       const std::function<void(LogRecord&)>& take) {
  std::vector<std::uint64_t> segments = find_segments(directory);
  std::erase_if(segments, [first](std::uint64_t segment) { return segment < first; });
  ReplayedLog out;
  out.next_segment = first;
  std::optional<Segment> here;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i] != out.next_segment) {
      throw Error(ErrorKind::data,
                  log_path(directory, out.next_segment) + ": this part of the log is missing",
                  "load the tables from a save, and start with an empty checkpoint directory");
    }
    if (!here) here.emplace(directory, segments[i]);
    const std::size_t end = here->replay(take, out.records);
    ++out.next_segment;
    std::optional<Segment> next;
    if (i + 1 < segments.size()) next.emplace(directory, segments[i + 1]);
    const bool is_last = !next || !next->follows(*here, end);
    if (next && !next->has_head() && i + 2 < segments.size())
      next->fail(0, next->damage(0) + ", and another segment follows");
    if (is_last) {
      out.cut_off = here->cut_off(end);
      if (next) out.cut_off += remove_segments(directory, std::span(segments).subspan(i + 1));
      break;
    }
    here = std::move(next);
  }
  return out;
}

void remove_log_before(const std::string& directory, std::uint64_t first) {
  for (const std::uint64_t segment : find_segments(directory)) {
    std::error_code ignored;
    if (segment < first) std::filesystem::remove(log_path(directory, segment), ignored);
  }
}

}  // namespace fleetrun::ps
