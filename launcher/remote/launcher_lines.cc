#include "launcher/remote/launcher_lines.h"

#include <utility>

namespace fleetrun::launcher::remote {
namespace {

constexpr std::string_view kStart = "LAUNCH ", kFailure = "Container failed !!!";
constexpr std::size_t kStamp = sizeof "2022-05-18 11:27:17,761 " - 1;
constexpr std::size_t kMaxScreen = 64 << 10, kMaxRecord = 256 << 10, kMaxPartial = 256 << 10;

void keep_end(std::string& text, std::size_t max) {
  if (text.size() > 2 * max) text.erase(0, text.size() - max);
}

/// "LAUNCH INFO 2022-05-18 11:27:17,761 text" → INFO, text.
bool read_record(std::string_view line, Log& record) {
  if (!line.starts_with(kStart)) return false;
  const std::size_t blank = line.find(' ', kStart.size());
  if (blank == std::string_view::npos || line.size() < blank + 1 + kStamp) return false;
  record.level = line.substr(kStart.size(), blank - kStart.size());
  record.text = line.substr(blank + 1 + kStamp);
  return true;
}

}  // namespace

void LauncherLines::add_line(std::string_view line, std::vector<Log>& records) {
  Log next;
  const bool begins = read_record(line, next);
  if (begins && next.text == kFailure) ends_ = true;
  if (begins && !record_.level.empty()) records.push_back(std::exchange(record_, {}));
  if (ends_ || (!begins && record_.level.empty())) {
    screen_.append(line).append("\n");
    keep_end(screen_, kMaxScreen);
    return;
  }
  if (begins)
    record_ = std::move(next);
  else if (record_.text.size() < kMaxRecord)
    record_.text.append("\n").append(line);
}

std::vector<Log> LauncherLines::take(std::string_view bytes) {
  std::vector<Log> records;
  partial_.append(bytes);
  std::size_t begin = 0;
  for (std::size_t end; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1)
    add_line(std::string_view(partial_).substr(begin, end - begin), records);
  partial_.erase(0, begin);
  keep_end(partial_, kMaxPartial);
  if (partial_.empty() && !record_.level.empty()) records.push_back(std::exchange(record_, {}));
  return records;
}

std::string LauncherLines::screen() {
  if (!partial_.empty()) screen_.append(std::exchange(partial_, {})).append("\n");
  if (screen_.size() > kMaxScreen) screen_.erase(0, screen_.size() - kMaxScreen);
  return std::move(screen_);
}

}  // namespace fleetrun::launcher::remote
