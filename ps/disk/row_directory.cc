// A directory is a leftover when all of this holds: its name is one of ours, it and its `owner` file belong
// to this user and are not links, the file starts as we start it and names this host, and nobody holds the
// lock on it. The lock is taken before the file gets its name, so that no directory in use can look like a
// leftover. Only `owner` and `rows` are removed: a directory that has anything else stays, with that.
#include "ps/disk/row_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/base/own_file.h"
#include "runtime/base/write_all.h"

namespace fleetrun::ps {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "fleetrun-rows-";
constexpr std::string_view kTitle =
    "cold rows of a fleetrun parameter server; worth nothing once it is gone\n";

std::string first_lines() {
  const std::string name = host_name();
  return std::string(kTitle) + "host " + (name.empty() ? "?" : name) + "\n";
}

[[noreturn]] void fail(const std::string& what, const std::string& path, const std::error_code& error) {
  throw Error(ErrorKind::host, "cannot " + what + " " + path + ": " + error.message(),
              "name a directory on a local disk that the servers may write to, with FLEETRUN_PS_DISK");
}

std::error_code last_error() {
  return {errno, std::generic_category()};
}

// The owner's file, locked; the lock is ours as long as the descriptor is open.
UniqueFd mark(const std::string& directory, const std::string& owner) {
  const std::string path = directory + "/owner";
  const std::string unnamed = path + ".new";
  UniqueFd file(open_own(unnamed, O_WRONLY | O_CREAT | O_EXCL, Readers::owner));
  if (!file) fail("make", unnamed, last_error());
  const std::string text = first_lines() + owner + "\nprocess " + std::to_string(::getpid()) + "\n";
  if (!write_all(file.value(), text)) fail("write", unnamed, last_error());
  if (::flock(file.value(), LOCK_EX | LOCK_NB) != 0) fail("lock", unnamed, last_error());
  if (::rename(unnamed.c_str(), path.c_str()) != 0) fail("rename to", path, last_error());
  return file;
}

void remove_ours(const fs::path& directory) noexcept {
  std::error_code ignored;
  fs::remove_all(directory / "rows", ignored);
  fs::remove(directory / "owner", ignored);
  fs::remove(directory, ignored);
}

bool is_own(int file, mode_t kind) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && (status.st_mode & S_IFMT) == kind && status.st_uid == ::geteuid();
}

bool is_leftover(const fs::path& directory) {
  const UniqueFd place(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!place || !is_own(place.value(), S_IFDIR)) return false;
  const UniqueFd file(::openat(place.value(), "owner", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file || !is_own(file.value(), S_IFREG)) return false;
  const std::string wanted = first_lines();
  std::string text(wanted.size(), '\0');
  const ssize_t size = ::pread(file.value(), text.data(), text.size(), 0);
  if (size != static_cast<ssize_t>(wanted.size()) || text != wanted) return false;
  return ::flock(file.value(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

RowDirectory::RowDirectory(const std::string& base, const std::string& owner) {
  std::error_code error;
  fs::create_directories(base, error);
  if (error) fail("make the directory", base, error);
  path_ = base + "/" + std::string(kPrefix) + "XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) fail("make a directory in", base, last_error());
  try {
    lock_ = mark(path_, owner);
  } catch (const Error&) {
    fs::remove_all(path_, error);
    throw;
  }
}

RowDirectory::~RowDirectory() {
  remove_ours(path_);
}

int remove_leftover_rows(const std::string& base) {
  int removed = 0;
  std::error_code error;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kPrefix) || !is_leftover(entry->path())) continue;
    remove_ours(entry->path());
    ++removed;
  }
  return removed;
}

}  // namespace fleetrun::ps
