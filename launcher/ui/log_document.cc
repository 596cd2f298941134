#include "launcher/ui/log_document.h"

#include <sys/stat.h>

#include <algorithm>

#include "launcher/logs/log_source.h"
#include "launcher/status/job_status.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kLookedAt = std::size_t{256} << 20, kSearched = std::size_t{64} << 20;
constexpr std::size_t kShownBytes = 4096, kLinesBack = 1024, kCached = 8192;
constexpr std::size_t kArriving = std::size_t{1} << 20, kLeastArriving = 4096, kFirstLines = 1000;

std::string shown(std::string_view line) {
  return last_shown_line(line, kShownBytes);
}

/// One file of a process's logs, and what tells it from others when its name changes.
struct Place {
  std::string path;
  ino_t inode = 0;
  off_t offset = 0;
};

ino_t inode_of(const std::string& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

/// "trainer.0.4711.1024~server.0.4712.99": role, rank, inode, offset.
std::map<std::string, Place> read_cursor(const std::string& cursor) {
  std::map<std::string, Place> places;
  for (const std::string& entry : split(cursor, '~')) {
    const std::size_t second = entry.rfind('.');
    const std::size_t first = second == 0 || second == entry.npos ? entry.npos : entry.rfind('.', second - 1);
    if (first == entry.npos) continue;
    const auto inode = parse_integer(std::string_view(entry).substr(first + 1, second - first - 1));
    const auto offset = parse_integer(std::string_view(entry).substr(second + 1));
    if (inode && offset && *offset >= 0)
      places[entry.substr(0, first)] = {"", static_cast<ino_t>(*inode), static_cast<off_t>(*offset)};
  }
  return places;
}

/// Where reading goes on: `files` are all of a process's, `newest` the first file of its newest attempt.
std::size_t find_place(const std::vector<std::string>& files, std::size_t newest, Place& place) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (inode_of(files[i]) == place.inode) return i;
  }
  place.offset = 0;
  return newest;
}

}  // namespace

LogDocument::LogDocument(const LogSpec& spec, Cache& cache) {
  if (cache.size() > kCached) cache.clear();
  std::size_t budget = kLookedAt;
  for (const auto& [process, logs] : wanted_logs(spec)) {
    for (const FoundLog& log : logs) {
      parts_.push_back({log.role, log.rank, log.attempt, count_, 0});
      for (const std::string& path : log.paths) {
        LogLines& lines = cache.try_emplace(path, path).first->second;
        is_whole_ = lines.look(budget) && is_whole_;
        files_.push_back({&lines, count_});
        count_ += lines.count();
      }
      parts_.back().lines = count_ - parts_.back().first;
    }
  }
}

std::vector<std::string> LogDocument::lines(std::size_t first, std::size_t count) const {
  std::vector<std::string> found;
  for (const File& file : files_) {
    if (file.first + file.lines->count() <= first) continue;
    if (found.size() >= count || file.first >= first + count) break;
    const std::size_t from = first > file.first ? first - file.first : 0;
    file.lines->each(from, first + count - file.first, [&](std::size_t, std::string_view line) {
      found.push_back(shown(line));
      return found.size() < count;
    });
  }
  return found;
}

LogDocument::Found LogDocument::find(const std::string& text, std::size_t from, bool back) const {
  Found found;
  std::size_t bytes = 0;
  from = std::min(from, count_);
  const auto look_at = [&](const File& file, std::size_t first, std::size_t last) {
    file.lines->each(first, last, [&](std::size_t number, std::string_view line) {
      bytes += line.size() + 1;
      if (line.find(text) != line.npos) found.line = file.first + number;
      if (!back && !found.line && bytes > kSearched) found.go_on = file.first + number + 1;
      return back || (!found.line && !found.go_on);
    });
    return found.line || found.go_on;
  };
  if (!back) {
    for (const File& file : files_) {
      const std::size_t end = file.lines->count();
      if (file.first + end > from && look_at(file, from > file.first ? from - file.first : 0, end)) break;
    }
    return found;
  }
  for (auto file = files_.rbegin(); file != files_.rend(); ++file) {
    if (file->first >= from) continue;
    for (std::size_t last = std::min(from - file->first, file->lines->count()); last > 0;) {
      const std::size_t first = last > kLinesBack ? last - kLinesBack : 0;
      if (look_at(*file, first, last)) return found;
      last = first;
      if (bytes > kSearched) {
        found.go_on = file->first + first;
        return found;
      }
    }
  }
  return found;
}

ArrivedLines arrived_lines(LogSpec spec, const std::string& cursor) {
  ArrivedLines arrived;
  std::map<std::string, Place> places = read_cursor(cursor);
  spec.all_attempts = true;
  const auto wanted = wanted_logs(spec);
  const std::size_t share = wanted.empty() ? 0 : std::max(kLeastArriving, kArriving / wanted.size());
  for (const auto& [process, logs] : wanted) {
    std::vector<std::string> files;
    for (const FoundLog& log : logs) files.insert(files.end(), log.paths.begin(), log.paths.end());
    const std::size_t newest = files.size() - logs.back().paths.size();
    const std::string name = process.first + "." + std::to_string(process.second);
    Place& place = places[name];
    std::size_t at = find_place(files, newest, place);
    if (cursor.empty()) {
      at = files.size() - 1;
      place.offset =
          start_of_last_lines(files[at], std::max<std::size_t>(kFirstLines / wanted.size(), 3), share);
    }
    std::vector<std::string> lines = new_lines(files[at], place.offset, share, at + 1 < files.size());
    if (lines.empty() && at + 1 < files.size()) {
      ++at;
      place.offset = 0;
      lines = new_lines(files[at], place.offset, share, at + 1 < files.size());
    }
    place.inode = inode_of(files[at]);
    for (const std::string& line : lines) arrived.lines.emplace_back(arrived.processes.size(), shown(line));
    arrived.processes.push_back(process);
    arrived.cursor.append(arrived.cursor.empty() ? "" : "~").append(name);
    arrived.cursor.append("." + std::to_string(place.inode) + "." + std::to_string(place.offset));
  }
  return arrived;
}

}  // namespace fleetrun::launcher
