// claims   "FRCLAIM2" | digest of the list u64 | a mark u16 for each file: 0, kDone, or its owner + 1
//
// The first byte of a file's mark is locked by who reads it. Locks are those of the open file (F_OFD_SETLK),
// so that two queues of one process are as far apart as those of two.
#include "dataset/base/file_queue.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>

#include "runtime/base/content_digest.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::dataset {
namespace {

constexpr std::array<char, 8> kMark{'F', 'R', 'C', 'L', 'A', 'I', 'M', '2'};
constexpr std::size_t kHeadBytes = 16;
constexpr std::uint16_t kDone = 1;
/// Between two looks for the owner of a file that another process of it will go on with.
constexpr std::chrono::milliseconds kLook(50);
using Head = std::array<char, kHeadBytes>;

Head head_of(const std::vector<std::string>& files) {
  ContentDigest digest;
  for (const std::string& file : files) digest.add(std::as_bytes(std::span(file.c_str(), file.size() + 1)));
  const std::uint64_t value = digest.value();
  Head head;
  std::memcpy(head.data(), kMark.data(), kMark.size());
  std::memcpy(head.data() + kMark.size(), &value, sizeof value);
  return head;
}

class SharedQueue : public FileQueue {
 public:
  SharedQueue(std::vector<std::string> files, const std::string& claims, std::uint16_t owner)
      : files_(std::move(files)), claims_(claims), own_(owner == 0 ? 0 : owner + 1) {
    fd_.reset(open_own(claims, O_RDWR | O_CREAT, Readers::by_directory));
    if (!fd_) fail("opened", errno);
    check_head();
  }

  std::optional<std::string> next() override {
    finish();
    // Others look at it for a moment only.
    for (std::size_t file = 0; own_ != 0 && file < files_.size(); ++file)
      if (mark(file) == own_ && take(file, F_OFD_SETLKW)) return files_[file];
    for (std::size_t file = 0; file < files_.size(); ++file)
      if (take(file, F_OFD_SETLK)) return files_[file];
    // Others hold what is left: the first of them that comes free is done, or for us.
    for (std::size_t file = 0; file < files_.size(); ++file) {
      while (mark(file) != kDone) {
        if (take(file, F_OFD_SETLKW)) return files_[file];
        if (is_kept(file)) std::this_thread::sleep_for(kLook);
      }
    }
    return std::nullopt;
  }

 private:
  [[noreturn]] void fail(const std::string& what, int error) const {
    throw Error(ErrorKind::host, claims_ + " cannot be " + what + ": " + std::strerror(error),
                "it is where trainers share their files: a directory that all of them can write to");
  }

  /// Writes the head where nobody has.
  void check_head() {
    const Head own = head_of(files_);
    if (!lock(F_OFD_SETLKW, F_WRLCK, 0)) fail("locked", errno);
    Head there{};
    const ssize_t count = ::pread(fd_.value(), there.data(), there.size(), 0);
    if (count < 0) fail("read", errno);
    if (count < static_cast<ssize_t>(there.size()) &&
        ::pwrite(fd_.value(), own.data(), own.size(), 0) != static_cast<ssize_t>(own.size()))
      fail("written", errno);
    lock(F_OFD_SETLK, F_UNLCK, 0);
    if (count == static_cast<ssize_t>(there.size()) && there != own)
      throw Error(ErrorKind::config,
                  claims_ + " is of another list of files than these " + std::to_string(files_.size()),
                  "every trainer gives the same files in the same order");
  }

  bool lock(int command, short type, off_t offset) {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = offset;
    range.l_len = 1;
    for (;;) {
      if (::fcntl(fd_.value(), command, &range) == 0) return true;
      if (errno != EINTR) return false;
    }
  }

  static off_t place_of(std::size_t file) {
    return static_cast<off_t>(kHeadBytes + file * sizeof(std::uint16_t));
  }

  std::uint16_t mark(std::size_t file) {
    std::uint16_t mark = 0;
    if (::pread(fd_.value(), &mark, sizeof mark, place_of(file)) < 0) fail("read", errno);
    return mark;
  }

  void set_mark(std::size_t file, std::uint16_t mark) {
    if (::pwrite(fd_.value(), &mark, sizeof mark, place_of(file)) != sizeof mark) fail("written", errno);
  }

  bool is_kept(std::size_t file) {
    const std::uint16_t now = mark(file);
    return now != 0 && now != kDone && now != own_;
  }

  bool take(std::size_t file, int command) {
    if (mark(file) == kDone) return false;
    if (!lock(command, F_WRLCK, place_of(file))) {
      if (errno != EAGAIN && errno != EACCES) fail("locked", errno);
      return false;
    }
    held_ = file;
    if (mark(file) == kDone || is_kept(file)) {
      release();
      return false;
    }
    if (own_ != 0) set_mark(file, own_);
    return true;
  }

  void finish() {
    if (!held_) return;
    set_mark(*held_, kDone);
    release();
  }

  void release() {
    lock(F_OFD_SETLK, F_UNLCK, place_of(*held_));
    held_.reset();
  }

  const std::vector<std::string> files_;
  const std::string claims_;
  const std::uint16_t own_;  // its mark; 0: it will not come back
  UniqueFd fd_;
  std::optional<std::size_t> held_;
};

}  // namespace

std::unique_ptr<FileQueue> make_shared_queue(std::vector<std::string> files, const std::string& claims,
                                             std::uint16_t owner) {
  return std::make_unique<SharedQueue>(std::move(files), claims, owner);
}

}  // namespace fleetrun::dataset
