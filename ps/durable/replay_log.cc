// Reading a log. A segment is read whole: it has as many bytes as a server writes between two checkpoints.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>

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

  /// Returns how many bytes were cut off.
  std::uint64_t replay(bool is_last, const std::function<void(LogRecord&)>& take, std::uint64_t& records) {
    SegmentHead head;
    if (bytes_.size() >= sizeof head) std::memcpy(&head, bytes_.data(), sizeof head);
    // A segment whose beginning did not come to the disk has nothing that was answered.
    if (head != SegmentHead{.segment = number_}) return cut_off(0, is_last);
    std::size_t at = sizeof head;
    while (at < bytes_.size()) {
      const auto record = whole_record(std::span(bytes_).subspan(at), number_, at);
      if (!record) return cut_off(at, is_last);
      LogRecord out{record->kind, Reader(std::span(bytes_).subspan(at + sizeof *record, record->length))};
      take(out);
      ++records;
      at += sizeof *record + record->length;
    }
    return 0;
  }

 private:
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

  std::uint64_t cut_off(std::size_t at, bool is_last) {
    const std::string what =
        at == 0 ? "it does not begin as segment " + std::to_string(number_) + " of a server's log"
                : "a record is damaged";
    if (!is_last) fail(at, what + ", and another segment follows");
    for (std::size_t after = at + 1; after + sizeof(RecordHead) <= bytes_.size(); ++after) {
      const auto record = whole_record(std::span(bytes_).subspan(after), number_, after);
      if (record && record->durable > at)
        fail(at,
             what + ", and it was safe when the record at byte " + std::to_string(after) + " was written");
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

  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw Error(ErrorKind::data, path_ + ": byte " + std::to_string(at) + ": " + what,
                "load the tables from a save, and start with an empty checkpoint directory");
  }

  std::string path_;
  std::uint64_t number_;
  std::vector<std::byte> bytes_;
};

}  // namespace

ReplayedLog replay_log(const std::string& directory, std::uint64_t first,
                       const std::function<void(LogRecord&)>& take) {
  std::vector<std::uint64_t> segments = find_segments(directory);
  std::erase_if(segments, [first](std::uint64_t segment) { return segment < first; });
  ReplayedLog out;
  out.next_segment = first;
  for (const std::uint64_t segment : segments) {
    if (segment != out.next_segment) {
      throw Error(ErrorKind::data,
                  log_path(directory, out.next_segment) + ": this part of the log is missing",
                  "load the tables from a save, and start with an empty checkpoint directory");
    }
    out.cut_off = Segment(directory, segment).replay(segment == segments.back(), take, out.records);
    ++out.next_segment;
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
