// claims   "FRCLAIM1" | digest of the list u64 | a byte for each file: 0, or 1 when it is done
//
// The byte of a file is locked by who reads it. Locks are those of the open file (F_OFD_SETLK), so that two
// queues of one process are as far apart as those of two.
#include "dataset/base/file_queue.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/base/content_digest.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::dataset {
namespace {

constexpr std::array<char, 8> kMark{'F', 'R', 'C', 'L', 'A', 'I', 'M', '1'};
constexpr std::size_t kHeadBytes = 16;
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
  SharedQueue(std::vector<std::string> files, const std::string& claims)
      : files_(std::move(files)), claims_(claims) {
    fd_.reset(open_own(claims, O_RDWR | O_CREAT, Readers::by_directory));
    if (!fd_) fail("opened", errno);
    check_head();
  }

  std::optional<std::string> next() override {
    finish();
    for (std::size_t file = 0; file < files_.size(); ++file)
      if (take(file, F_OFD_SETLK)) return files_[file];
    // Others hold what is left: the first of them that comes free is done, or for us.
    for (std::size_t file = 0; file < files_.size(); ++file)
      if (take(file, F_OFD_SETLKW)) return files_[file];
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

  bool lock(int command, short type, std::size_t offset) {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(offset);
    range.l_len = 1;
    for (;;) {
      if (::fcntl(fd_.value(), command, &range) == 0) return true;
      if (errno != EINTR) return false;
    }
  }

  static std::size_t byte_of(std::size_t file) { return kHeadBytes + file; }

  bool is_done(std::size_t file) {
    char byte = 0;
    if (::pread(fd_.value(), &byte, 1, static_cast<off_t>(byte_of(file))) < 0) fail("read", errno);
    return byte != 0;
  }

  bool take(std::size_t file, int command) {
    if (is_done(file)) return false;
    if (!lock(command, F_WRLCK, byte_of(file))) {
      if (errno != EAGAIN && errno != EACCES) fail("locked", errno);
      return false;
    }
    held_ = file;
    if (!is_done(file)) return true;
    release();
    return false;
  }

  void finish() {
    if (!held_) return;
    const char done = 1;
    if (::pwrite(fd_.value(), &done, 1, static_cast<off_t>(byte_of(*held_))) != 1) fail("written", errno);
    release();
  }

  void release() {
    lock(F_OFD_SETLK, F_UNLCK, byte_of(*held_));
    held_.reset();
  }

  const std::vector<std::string> files_;
  const std::string claims_;
  UniqueFd fd_;
  std::optional<std::size_t> held_;
};

}  // namespace

std::unique_ptr<FileQueue> make_shared_queue(std::vector<std::string> files, const std::string& claims) {
  return std::make_unique<SharedQueue>(std::move(files), claims);
}

}  // namespace fleetrun::dataset
