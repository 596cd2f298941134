#include "tests/integration/ps/saving/file_faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>

namespace fleetrun::tests {
namespace {

struct Watch {
  std::mutex mutex;
  bool on = false;
  std::string directory;
  FileFault fault = FileFault::none;
  std::uint64_t at = 0;
  std::uint64_t calls = 0;
  std::array<std::string, 4096> open_files;
  std::array<std::uint64_t, 4096> offsets{};
  std::vector<FileStep> steps;
  std::condition_variable changed;
  bool holds_syncs = false;
  std::size_t held_syncs = 0;
};

Watch& watch() {
  static Watch only;
  return only;
}

bool is_watched(const char* path) {
  return watch().on && path != nullptr && std::string_view(path).starts_with(watch().directory);
}

// Counts a call. True when it is the one that is to fail; it does not return when it is to be the last one.
bool fails_now() {
  Watch& all = watch();
  if (++all.calls != all.at) return false;
  if (all.fault == FileFault::kill) ::syscall(SYS_kill, ::getpid(), SIGKILL);
  errno = all.fault == FileFault::no_space ? ENOSPC : EIO;
  return all.fault != FileFault::none;
}

std::string file_of(int fd) {
  return fd >= 0 && fd < 4096 ? watch().open_files[static_cast<std::size_t>(fd)] : std::string();
}

int open_watched(const char* path, int flags, mode_t mode) {
  if (!is_watched(path)) return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  const std::lock_guard lock(watch().mutex);
  const bool changes = (flags & O_CREAT) != 0;
  if (changes && fails_now()) return -1;
  const bool is_new = ::syscall(SYS_access, path, F_OK) != 0;
  const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  if (fd < 0 || fd >= 4096) return fd;
  watch().open_files[static_cast<std::size_t>(fd)] = path;
  watch().offsets[static_cast<std::size_t>(fd)] = 0;
  if (changes && (is_new || (flags & O_TRUNC) != 0))
    watch().steps.push_back({FileStep::Kind::create, path, {}, 0, {}});
  return fd;
}

/// What `name` below an opened directory is.
std::string path_below(int directory, const char* name) {
  if (directory == AT_FDCWD || name[0] == '/') return name;
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(directory), ignored).string() + "/" +
         name;
}

}  // namespace

void watch_files(const std::string& directory, FileFault fault, std::uint64_t at) {
  Watch& all = watch();
  const std::lock_guard lock(all.mutex);
  all.directory = directory;
  all.fault = fault;
  all.at = at;
  all.calls = 0;
  all.steps.clear();
  all.on = true;
}

std::uint64_t stop_watching_files() {
  const std::lock_guard lock(watch().mutex);
  watch().on = false;
  return watch().calls;
}

void hold_syncs() {
  const std::lock_guard lock(watch().mutex);
  watch().holds_syncs = true;
}

void await_held_sync() {
  std::unique_lock lock(watch().mutex);
  watch().changed.wait(lock, [] { return watch().held_syncs > 0; });
}

void let_syncs_go_on() {
  const std::lock_guard lock(watch().mutex);
  watch().holds_syncs = false;
  watch().changed.notify_all();
}

void record_done() {
  const std::lock_guard lock(watch().mutex);
  watch().steps.push_back({});
}

const std::vector<FileStep>& file_steps() {
  return watch().steps;
}

}  // namespace fleetrun::tests

using namespace fleetrun::tests;

extern "C" {

// With 64-bit offsets, which the build asks for, the C library's names of these are open64 and openat64.
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_watched(path, flags, mode);
}

int openat(int directory, const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (!watch().on) return static_cast<int>(::syscall(SYS_openat, directory, name, flags, mode));
  return open_watched(path_below(directory, name).c_str(), flags, mode);
}

ssize_t write(int fd, const void* bytes, std::size_t size) {
  if (!watch().on || file_of(fd).empty()) return ::syscall(SYS_write, fd, bytes, size);
  const std::lock_guard lock(watch().mutex);
  if (fails_now()) {
    if (watch().fault != FileFault::short_write || size < 2) return -1;
    size /= 2;
  }
  const ssize_t done = ::syscall(SYS_write, fd, bytes, size);
  if (done <= 0) return done;
  std::uint64_t& offset = watch().offsets[static_cast<std::size_t>(fd)];
  watch().steps.push_back({FileStep::Kind::write,
                           file_of(fd),
                           {},
                           offset,
                           std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(done))});
  offset += static_cast<std::uint64_t>(done);
  return done;
}

ssize_t writev(int fd, const iovec* parts, int count) {
  if (!watch().on || file_of(fd).empty()) return ::syscall(SYS_writev, fd, parts, count);
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return ::write(fd, bytes.data(), bytes.size());
}

int fdatasync(int fd) {
  return ::fsync(fd);
}

int fsync(int fd) {
  if (!watch().on || file_of(fd).empty()) return static_cast<int>(::syscall(SYS_fsync, fd));
  std::unique_lock lock(watch().mutex);
  ++watch().held_syncs;
  watch().changed.notify_all();
  watch().changed.wait(lock, [] { return !watch().holds_syncs; });
  --watch().held_syncs;
  if (fails_now()) return -1;
  watch().steps.push_back({FileStep::Kind::sync, file_of(fd), {}, 0, {}});
  return 0;  // what survives is up to the test, which need not wait for a disk
}

int close(int fd) {
  if (fd >= 0 && fd < 4096 && !file_of(fd).empty()) {
    const std::lock_guard lock(watch().mutex);
    watch().open_files[static_cast<std::size_t>(fd)].clear();
  }
  return static_cast<int>(::syscall(SYS_close, fd));
}

int rename(const char* from, const char* to) noexcept {
  if (!is_watched(from)) return static_cast<int>(::syscall(SYS_rename, from, to));
  const std::lock_guard lock(watch().mutex);
  if (fails_now()) return -1;
  const int result = static_cast<int>(::syscall(SYS_rename, from, to));
  if (result == 0) watch().steps.push_back({FileStep::Kind::rename, from, to, 0, {}});
  return result;
}

int unlink(const char* path) noexcept {
  if (!is_watched(path)) return static_cast<int>(::syscall(SYS_unlink, path));
  const std::lock_guard lock(watch().mutex);
  if (fails_now()) return -1;
  const int result = static_cast<int>(::syscall(SYS_unlink, path));
  if (result == 0) watch().steps.push_back({FileStep::Kind::unlink, path, {}, 0, {}});
  return result;
}

}  // extern "C"
