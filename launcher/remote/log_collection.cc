#include "launcher/remote/log_collection.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher::remote {
namespace {

constexpr int kDeepest = 3;
constexpr std::size_t kMaxNames = 4, kPiece = 128 << 10;
constexpr std::int64_t kSecond = 1'000'000'000;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

std::vector<std::string> names_in(const std::string& directory) {
  const std::unique_ptr<DIR, CloseDirectory> entries(::opendir(directory.c_str()));
  std::vector<std::string> names;
  while (entries) {
    const dirent* entry = ::readdir(entries.get());
    if (!entry) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

bool is_log_path(std::string_view path) noexcept {
  std::size_t names = 0;
  for (;; ++names) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string_view::npos)
      return false;
    if (slash == path.size()) return names < kMaxNames;
    path.remove_prefix(slash + 1);
  }
}

LogSender::LogSender(const std::string& directory, const std::string& marker, std::int64_t since_ns)
    : directory_(directory) {
  struct stat facts = {};
  if (!marker.empty() && marker.find('/') == std::string::npos &&
      ::lstat((directory + "/" + marker).c_str(), &facts) == 0)
    return;
  find("", 1, since_ns);
  std::reverse(paths_.begin(), paths_.end());
}

void LogSender::find(const std::string& below, int depth, std::int64_t since_ns) {
  for (const std::string& name : names_in(directory_ + "/" + below)) {
    const std::string path = below + name;
    struct stat facts = {};
    if (::lstat((directory_ + "/" + path).c_str(), &facts) != 0) continue;
    if (S_ISDIR(facts.st_mode) && depth <= kDeepest) find(path + "/", depth + 1, since_ns);
    if (S_ISREG(facts.st_mode) && facts.st_mtim.tv_sec * kSecond + facts.st_mtim.tv_nsec >= since_ns)
      paths_.push_back(path);
  }
}

std::optional<File> LogSender::next() {
  std::string bytes(kPiece, '\0');
  while (file_ || !paths_.empty()) {
    const bool first = !file_;
    if (first) {
      path_ = paths_.back();
      paths_.pop_back();
      file_.reset(::open((directory_ + "/" + path_).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    }
    const ssize_t count = file_ ? ::read(file_.value(), bytes.data(), bytes.size()) : -1;
    if (count < 0) error_ = path_ + ": " + std::strerror(errno);
    if (count <= 0) file_.reset();
    if (count > 0 || (count == 0 && first)) {
      bytes.resize(static_cast<std::size_t>(count));
      return File{path_, std::move(bytes), first};
    }
  }
  return std::nullopt;
}

void LogReceiver::take(const File& file) {
  if (!is_log_path(file.path))
    throw Error(ErrorKind::data,
                "a host sends a log named '" + printable(file.path, 80) + "', which is not kept");
  if (file.first) {
    ::mkdir(directory_.c_str(), 0700);
    for (std::size_t slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', slash + 1))
      ::mkdir((directory_ + "/" + file.path.substr(0, slash)).c_str(), 0700);
    path_ = directory_ + "/" + file.path;
    const int opened = open_own(path_, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, Readers::owner);
    file_.reset(check_errno(opened, "open", "bringing " + path_));
    ++files_;
  }
  for (std::size_t written = 0; file_ && written < file.bytes.size();) {
    const ssize_t count = ::write(file_.value(), file.bytes.data() + written, file.bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    check_errno(count < 0 ? -1 : 0, "write", "bringing " + path_);
    written += static_cast<std::size_t>(count);
  }
}

}  // namespace fleetrun::launcher::remote
