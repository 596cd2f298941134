#include "launcher/ship/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "launcher/ship/read_tree.h"
#include "runtime/base/codec.h"
#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"
#include "runtime/base/write_all.h"

namespace fleetrun::launcher::ship {
namespace {

constexpr std::uint64_t kMargin = 1 << 20;  // for directories
constexpr int kTries = 100;
constexpr std::chrono::milliseconds kPause{10};

std::int64_t nanoseconds(const timespec& time) noexcept {
  return time.tv_sec * kSecond + time.tv_nsec;
}

bool is_plain(std::string_view path) {
  const std::vector<std::string> names = split(path, '/');
  return !names.empty() && std::none_of(names.begin(), names.end(), [](const std::string& name) {
    return name.empty() || name == "." || name == ".." || name.find('\0') != std::string::npos;
  });
}

std::string size_text(std::uint64_t bytes) {
  const std::uint64_t mebibytes = bytes >> 20;
  return mebibytes >= 10'240 ? std::to_string(mebibytes >> 10) + " GiB" : std::to_string(mebibytes) + " MiB";
}

std::string read_all(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::string bytes;
  char block[64 << 10];
  for (ssize_t count; file && (count = ::read(file.value(), block, sizeof block)) > 0;)
    bytes.append(block, static_cast<std::size_t>(count));
  return bytes;
}

void put(int file, std::string_view bytes, const std::string& path) {
  check_errno(write_all(file, bytes) ? 0 : -1, "write", "putting " + printable(path) + " there");
}

}  // namespace

Store::Store(std::string root)
    : root_(std::move(root)),
      lock_(open_own(root_ + "/.lock", O_RDWR | O_CREAT, Readers::owner)),
      incoming_(root_ + "/.incoming-" + host_name() + "-" + std::to_string(::getpid())) {
  check_errno(lock_.value(), "open", "locking " + root_);
  ::flock(lock_.value(), LOCK_SH);  // where the file system has no locks, nothing is ever removed
}

Store::~Store() {
  if (file_) ::unlink(incoming_.c_str());
}

std::vector<Range> Store::begin(List list) {
  list_ = std::move(list);
  for (const Item& item : list_.items) {
    if (!is_plain(item.path)) throw Error(ErrorKind::data, "a list has '" + printable(item.path) + "' in it");
  }
  read_index();
  remove_old();
  std::vector<Range> ranges;
  std::uint64_t bytes = 0;
  wanted_.assign(list_.items.size(), false);
  for (std::uint32_t i = 0; i < list_.items.size(); ++i) {
    const Item& item = list_.items[i];
    if (item.kind != Kind::file) {
      make(item);
    } else if (!has(item)) {
      wanted_[i] = true;
      ++missing_;
      bytes += item.size;
      if (!ranges.empty() && ranges.back().first + ranges.back().second == i)
        ++ranges.back().second;
      else
        ranges.emplace_back(i, 1);
    }
  }
  check_room(bytes);
  return ranges;
}

void Store::read_index() {
  const std::string bytes = read_all(index_path());
  if (bytes.empty()) return;
  try {
    codec::Reader reader(bytes);
    reader(known_);
  } catch (const Error&) {
    known_.clear();  // of another version: files are read instead
  }
}

/// What an earlier list had in the same folders, and this one has not.
void Store::remove_old() {
  std::set<std::string> kept;
  for (const Item& item : list_.items) kept.insert(item.path);
  for (auto entry = known_.begin(); entry != known_.end();) {
    const std::string& path = entry->first;
    const bool within =
        std::any_of(list_.folders.begin(), list_.folders.end(), [&](const std::string& folder) {
          return path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/';
        });
    if (!within || kept.contains(path)) {
      ++entry;
      continue;
    }
    if (is_known(path)) ::unlink((root_ + "/" + path).c_str());
    entry = known_.erase(entry);
  }
}

bool Store::is_known(const std::string& path) const {
  const auto known = known_.find(path);
  struct stat facts = {};
  return known != known_.end() && ::lstat((root_ + "/" + path).c_str(), &facts) == 0 &&
         S_ISREG(facts.st_mode) && known->second.size == static_cast<std::uint64_t>(facts.st_size) &&
         known->second.mtime_ns == nanoseconds(facts.st_mtim) &&
         known->second.ctime_ns == nanoseconds(facts.st_ctim);
}

bool Store::has(const Item& item) {
  const std::string path = root_ + "/" + item.path;
  struct stat facts = {};
  if (::lstat(path.c_str(), &facts) != 0) return false;
  if (S_ISDIR(facts.st_mode) && ::rmdir(path.c_str()) != 0)
    throw Error(ErrorKind::host, printable(path) + " is a directory, and a file is to lie there",
                "move it away: somebody made it there");
  if (!S_ISREG(facts.st_mode) || static_cast<std::uint64_t>(facts.st_size) != item.size) return false;
  const bool same =
      is_known(item.path) ? known_[item.path].digest == item.digest : digest_of_file(path) == item.digest;
  if (!same) return false;
  if ((facts.st_mode & 0777) != (item.mode | 0600)) ::chmod(path.c_str(), item.mode | 0600);
  if (nanoseconds(facts.st_mtim) != item.mtime_ns) {
    const timespec times[2] = {{0, UTIME_OMIT}, {item.mtime_ns / kSecond, item.mtime_ns % kSecond}};
    ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
  }
  if (::lstat(path.c_str(), &facts) == 0)
    known_[item.path] = {item.size, item.digest, nanoseconds(facts.st_mtim), nanoseconds(facts.st_ctim)};
  return true;
}

void Store::make(const Item& item) {
  const std::string path = root_ + "/" + item.path;
  struct stat facts = {};
  const bool there = ::lstat(path.c_str(), &facts) == 0;
  const std::string doing = "making " + printable(path);
  if (item.kind == Kind::directory) {
    if (there && S_ISDIR(facts.st_mode)) return;
    if (there) check_errno(::unlink(path.c_str()), "unlink", doing);
    if (::mkdir(path.c_str(), item.mode | 0700) != 0 && errno != EEXIST) check_errno(-1, "mkdir", doing);
    return;
  }
  // A link to what travels too leads to where that lies here.
  std::string target = item.target;
  if (target.starts_with('/')) {
    const bool travels =
        std::any_of(list_.folders.begin(), list_.folders.end(), [&](const std::string& folder) {
          const std::string whole = list_.prefix + target;
          return whole.starts_with(folder) && (whole.size() == folder.size() || whole[folder.size()] == '/');
        });
    if (travels) target = root_ + "/" + list_.prefix + target;
  }
  char present[4096] = {};
  if (there && S_ISLNK(facts.st_mode) && ::readlink(path.c_str(), present, sizeof present - 1) > 0 &&
      target == present)
    return;
  if (there) check_errno(::unlink(path.c_str()), "unlink", doing);
  if (::symlink(target.c_str(), path.c_str()) != 0 && errno != EEXIST) check_errno(-1, "symlink", doing);
}

void Store::check_room(std::uint64_t bytes) const {
  struct statvfs system = {};
  if (bytes == 0 || ::statvfs(root_.c_str(), &system) != 0) return;
  const std::uint64_t available = static_cast<std::uint64_t>(system.f_bavail) * system.f_frsize;
  if (bytes + kMargin > available)
    throw Error(
        ErrorKind::host,
        size_text(bytes) + " are to come, and " + printable(root_) + " has room for " + size_text(available),
        "make room there, name another place on the hosts with --ship_to, or leave folders out with "
        "--ship_exclude");
}

void Store::take(const Piece& piece) {
  if (piece.item >= wanted_.size() || !wanted_[piece.item] || (file_ && piece.item != item_))
    throw Error(ErrorKind::data, "a file came that nobody had asked for");
  const Item& item = list_.items[piece.item];
  if (!file_) {
    item_ = piece.item;
    written_ = 0;
    digest_ = ContentDigest();
    ::unlink(incoming_.c_str());
    file_.reset(check_errno(open_own(incoming_, O_WRONLY | O_CREAT | O_EXCL, Readers::owner), "open",
                            "making " + incoming_));
  }
  put(file_.value(), piece.bytes, root_ + "/" + item.path);
  digest_.add(std::as_bytes(std::span(piece.bytes)));
  written_ += piece.bytes.size();
  if (written_ >= item.size) place();
}

void Store::place() {
  const Item& item = list_.items[item_];
  const std::string path = root_ + "/" + item.path;
  if (written_ != item.size || digest_.value() != item.digest)
    throw Error(ErrorKind::data, "/" + printable(item.path) + " changed while it was sent",
                "start the job when nobody writes there, or leave it out: --ship_exclude=NAME");
  const std::string doing = "putting " + printable(path) + " there";
  check_errno(::fchmod(file_.value(), item.mode | 0600), "fchmod", doing);
  const timespec times[2] = {{0, UTIME_OMIT}, {item.mtime_ns / kSecond, item.mtime_ns % kSecond}};
  check_errno(::futimens(file_.value(), times), "futimens", doing);
  check_errno(::rename(incoming_.c_str(), path.c_str()), "rename", doing);
  struct stat facts = {};
  check_errno(::fstat(file_.value(), &facts), "fstat", doing);
  const int raw = file_.release();
  check_errno(::close(raw), "close", doing);  // a full disk on a network is told here
  known_[item.path] = {item.size, item.digest, nanoseconds(facts.st_mtim), nanoseconds(facts.st_ctim)};
  wanted_[item_] = false;
  --missing_;
}

/// pyvenv.cfg with the place of the interpreter here.
void Store::write_environment() const {
  const std::string name = std::string(kEnvironmentFile) + std::string(kAdapted);
  for (const Item& item : list_.items) {
    if (!item.path.ends_with(name) || list_.python_home.empty()) continue;
    const std::string path = root_ + "/" + item.path.substr(0, item.path.size() - kAdapted.size());
    std::string text;
    for (const std::string& line : split(read_all(root_ + "/" + item.path), '\n')) {
      const bool is_home = line.starts_with("home ") || line.starts_with("home=");
      text += is_home ? "home = " + root_ + "/" + list_.prefix + list_.python_home : line;
      text += "\n";
    }
    if (read_all(path) == text) continue;
    const UniqueFd file(open_own(path, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner));
    check_errno(file.value(), "open", "writing " + path);
    put(file.value(), text, path);
  }
}

void Store::finish() {
  write_environment();
  codec::Writer writer;
  writer(known_);
  const std::string path = index_path(), bytes = writer.take();
  if (read_all(path) == bytes) return;
  const UniqueFd file(open_own(incoming_, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner));
  check_errno(file.value(), "open", "writing " + path);
  put(file.value(), bytes, path);
  check_errno(::rename(incoming_.c_str(), path.c_str()), "rename", "writing " + path);
}

std::string Store::place_of(const std::string& path) const {
  if (!path.starts_with('/')) return path;
  const std::string place = root_ + "/" + list_.prefix + path;
  return ::access(place.c_str(), F_OK) == 0 ? place : path;
}

/// False where another job uses the store. One that has just ended may hold it for a moment longer.
bool Store::lock_alone() const noexcept {
  for (int i = 0; i < kTries; ++i) {
    if (::flock(lock_.value(), LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

void Store::remove() noexcept {
  if (!lock_alone()) return;
  std::set<std::string> folders;
  for (const Item& item : list_.items) {
    if (item.kind == Kind::link || (item.kind == Kind::file && is_known(item.path)))
      ::unlink((root_ + "/" + item.path).c_str());
    for (std::size_t slash = item.path.find('/'); slash != std::string::npos;
         slash = item.path.find('/', slash + 1))
      folders.insert(item.path.substr(0, slash));
    if (item.kind == Kind::directory) folders.insert(item.path);
    if (item.path.ends_with(kAdapted))
      ::unlink((root_ + "/" + item.path.substr(0, item.path.size() - kAdapted.size())).c_str());
    if (item.path.starts_with("launcher-"))
      ::unlink((root_ + "/" + item.path.substr(0, item.path.find('/')) + "/fleetrun").c_str());
  }
  ::unlink(index_path().c_str());
  ::unlink((root_ + "/.lock").c_str());
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    std::error_code ignored;
    std::filesystem::remove_all(root_ + "/" + *folder + "/__pycache__", ignored);
    ::rmdir((root_ + "/" + *folder).c_str());
  }
  ::rmdir((root_ + "/from").c_str());
  ::rmdir(root_.c_str());
}

}  // namespace fleetrun::launcher::ship
