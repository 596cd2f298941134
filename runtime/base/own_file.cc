#include "runtime/base/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "runtime/base/defences.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun {
namespace {

constexpr mode_t kOwner = 0600, kAnybody = 0666, kOthers = 077;

bool is_trusted(uid_t owner) noexcept {
  return owner == ::geteuid() || owner == 0 || !defends("files of others");
}

mode_t mode_in(int directory, Readers readers) noexcept {
  struct stat info = {};
  if (!defends("files for the owner")) return kAnybody;
  if (readers == Readers::owner || ::fstatat(directory, "", &info, AT_EMPTY_PATH) != 0) return kOwner;
  return (info.st_mode & kOthers) == 0 ? kOwner : kAnybody;
}

/// What is there already is ours and is a file; then it is emptied where that is wanted.
bool accept(int file, bool empties) noexcept {
  struct stat info = {};
  if (::fstat(file, &info) != 0) return false;
  if (!S_ISREG(info.st_mode) || !is_trusted(info.st_uid)) {
    errno = EPERM;
    return false;
  }
  return !empties || info.st_size == 0 || ::ftruncate(file, 0) == 0;
}

}  // namespace

int open_own_at(int directory, const std::string& name, int flags, Readers readers) noexcept {
  const int opened =
      (flags & ~O_TRUNC) | (defends("planted links") ? O_NOFOLLOW : 0) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  UniqueFd file(::openat(directory, name.c_str(), opened, mode_in(directory, readers)));
  if (!file) {
    if (errno == ENXIO) errno = EPERM;  // a pipe that nobody reads
    return -1;
  }
  if ((flags & O_EXCL) == 0 && !accept(file.value(), (flags & O_TRUNC) != 0)) {
    const int error = errno;
    file.reset();
    errno = error;
    return -1;
  }
  if ((flags & O_NONBLOCK) == 0) ::fcntl(file.value(), F_SETFL, flags & O_APPEND);
  return file.release();
}

int open_own(const std::string& path, int flags, Readers readers) noexcept {
  if (path == "/dev/stdout" || path == "/dev/null" || path.starts_with("/dev/fd/"))
    return ::open(path.c_str(), (flags & ~O_CREAT) | O_CLOEXEC | O_NOCTTY);
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd directory(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return -1;
  return open_own_at(directory.value(), path.substr(slash == std::string::npos ? 0 : slash + 1), flags,
                     readers);
}

void make_own_directory(const std::string& path) {
  const std::string shown = "the directory " + printable(path);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::host, shown + " " + why,
                "keep it where you may write, and where nobody else put something in its place");
  };
  std::filesystem::path place(path);
  if (!place.has_filename()) place = place.parent_path();
  std::error_code error;
  if (place.has_parent_path()) std::filesystem::create_directories(place.parent_path(), error);
  if (error) refuse("cannot be made: " + error.message());
  if (::mkdir(place.c_str(), 0700) != 0 && errno != EEXIST)
    refuse("cannot be made: " + std::generic_category().message(errno));
  const UniqueFd directory(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory)
    refuse(errno == ENOTDIR || errno == ELOOP ? "is a symbolic link or a file"
                                              : std::generic_category().message(errno));
  struct stat info = {};
  check_errno(::fstat(directory.value(), &info), "fstat", path);
  if (!is_trusted(info.st_uid))
    refuse("belongs to user " + std::to_string(info.st_uid) + ", and this process runs as user " +
           std::to_string(::geteuid()));
  // As /tmp, which root would close to everybody else.
  if ((info.st_mode & S_ISVTX) != 0 && (info.st_mode & kOthers) != 0)
    refuse("is one that all users share: name one below it");
  if (info.st_uid == ::geteuid() && (info.st_mode & kOthers) != 0)
    check_errno(::fchmod(directory.value(), info.st_mode & 07700), "fchmod", path);
}

}  // namespace fleetrun
