#include "ps/base/block_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "ps/base/directory_sync.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::uint64_t kBlocksOnTheWay = 8;

struct BlockHead {
  std::uint32_t length = 0;
  std::uint32_t checksum = 0;
};

void write_all(int file, const void* bytes, std::size_t size, const std::string& path) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t done = ::write(file, at, size);
    if (done < 0 && errno == EINTR) continue;
    check_errno(done < 0 ? -1 : 0, "write", path);
    at += done;
    size -= static_cast<std::size_t>(done);
  }
}

// The number of bytes read: fewer than asked for at the end of the file.
std::size_t read_all(int file, void* out, std::size_t size, const std::string& path) {
  std::size_t got = 0;
  while (got < size) {
    const ssize_t done = ::read(file, static_cast<char*>(out) + got, size - got);
    if (done < 0 && errno == EINTR) continue;
    check_errno(done < 0 ? -1 : 0, "read", path);
    if (done == 0) break;
    got += static_cast<std::size_t>(done);
  }
  return got;
}

std::uint32_t checksum_of(std::uint64_t number, std::uint32_t length, std::span<const std::byte> payload) {
  std::uint32_t crc = crc32c(std::as_bytes(std::span(&number, 1)));
  crc = crc32c(std::as_bytes(std::span(&length, 1)), crc);
  return crc32c(payload, crc);
}

struct OpenFile {
  UniqueFd file;
  std::uint64_t bytes = 0;
};

// Nothing there: no file. A FIFO in the file's place must not be waited for,
// nor a link followed out of the directory.
OpenFile open_for_reading(const std::string& path) {
  OpenFile out{UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)), 0};
  if (!out.file) {
    if (errno == ENOENT || errno == ENOTDIR) return out;
    if (errno == ELOOP) throw Error(ErrorKind::data, path + ": it is a symbolic link, not a file");
    check_errno(-1, "open", path);
  }
  struct stat status {};
  check_errno(::fstat(out.file.value(), &status), "fstat", path);
  if (!S_ISREG(status.st_mode)) throw Error(ErrorKind::data, path + ": it is not a file");
  out.bytes = static_cast<std::uint64_t>(status.st_size);
  return out;
}

UniqueFd make_file(const std::string& path) {
  UniqueFd file(open_own(path, O_WRONLY | O_CREAT | O_EXCL, Readers::by_directory));
  if (!file && errno == EEXIST) {
    throw Error(ErrorKind::host, path + ": it is there already",
                "another process saves to the same directory: give each its own");
  }
  check_errno(file.value(), "open", path);
  // Where the file system knows no locks, the cleaner sees none either and leaves what it cannot lock.
  ::flock(file.value(), LOCK_EX | LOCK_NB);
  return file;
}

}  // namespace

BlockWriter::BlockWriter(const std::string& path) : path_(path), file_(make_file(path)) {
  block_.reserve(sizeof(BlockHead) + kBlockBytes);
  start_block();
}

BlockWriter::BlockWriter(std::vector<std::byte>& memory) : memory_(&memory) {
  block_.reserve(sizeof(BlockHead) + kBlockBytes);
  start_block();
}

BlockWriter::~BlockWriter() {
  if (!finished_ && !memory_) ::unlink(path_.c_str());
}

void BlockWriter::start_block() {
  block_.resize(sizeof(BlockHead));
}

void BlockWriter::write(const void* bytes, std::size_t size) {
  const auto* at = static_cast<const std::byte*>(bytes);
  while (size > 0) {
    const std::size_t part = std::min(size, sizeof(BlockHead) + kBlockBytes - block_.size());
    block_.insert(block_.end(), at, at + part);
    at += part;
    size -= part;
    if (block_.size() == sizeof(BlockHead) + kBlockBytes) flush_block();
  }
}

void BlockWriter::flush_block() {
  BlockHead head;
  head.length = static_cast<std::uint32_t>(block_.size() - sizeof head);
  head.checksum = checksum_of(blocks_++, head.length, std::span(block_).subspan(sizeof head));
  std::memcpy(block_.data(), &head, sizeof head);
  digest_.add(block_);
  if (memory_) {
    memory_->insert(memory_->end(), block_.begin(), block_.end());
  } else {
    write_all(file_.value(), block_.data(), block_.size(), path_);
  }
  // The disk begins now with what it would otherwise only get at the end; that it cannot is not an error.
  if (!memory_ && blocks_ % kBlocksOnTheWay == 0) {
    ::sync_file_range(file_.value(), static_cast<off_t>(begun_),
                      static_cast<off_t>(bytes_ + block_.size() - begun_), SYNC_FILE_RANGE_WRITE);
    begun_ = bytes_ + block_.size();
  }
  bytes_ += block_.size();
  start_block();
}

BlockWriter::Written BlockWriter::finish() {
  if (block_.size() > sizeof(BlockHead)) flush_block();
  flush_block();  // the empty one that ends the file
  if (!memory_) check_errno(::fsync(file_.value()), "fsync", path_);
  finished_ = true;
  return {bytes_, digest_.value()};
}

void BlockWriter::check_still_there() const {
  struct stat status {};
  check_errno(::fstat(file_.value(), &status), "fstat", path_);
  if (status.st_nlink != 0) return;
  throw Error(ErrorKind::host, path_ + ": it was removed before the save was complete",
              "another process cleans or saves to the same directory: give each its own");
}

BlockReader::BlockReader(const std::string& path, std::uint64_t bytes) : path_(path) {
  OpenFile opened = open_for_reading(path);
  if (!opened.file) fail("the file is not there");
  file_ = std::move(opened.file);
  left_ = opened.bytes;
  if (left_ != bytes) {
    fail("it has " + std::to_string(left_) + " bytes, the manifest says " + std::to_string(bytes));
  }
}

BlockReader::BlockReader(std::string name, std::span<const std::byte> memory)
    : path_(std::move(name)), memory_(memory), left_(memory.size()) {}

void BlockReader::fail(const std::string& what) const {
  throw Error(ErrorKind::data, path_ + ": " + what);
}

void BlockReader::read_file(void* out, std::size_t size) {
  const bool has_all = size <= left_ && (!file_ || read_all(file_.value(), out, size, path_) == size);
  if (!has_all) fail("the file ends within block " + std::to_string(blocks_));
  if (!file_) {
    std::ranges::copy(memory_.first(size), static_cast<std::byte*>(out));
    memory_ = memory_.subspan(size);
  }
  left_ -= size;
}

bool BlockReader::next_block() {
  if (ended_) return false;
  BlockHead head;
  read_file(&head, sizeof head);
  if (head.length > kBlockBytes) fail("block " + std::to_string(blocks_) + " is damaged");
  block_.resize(head.length);
  read_file(block_.data(), block_.size());
  if (head.checksum != checksum_of(blocks_, head.length, block_)) {
    fail("block " + std::to_string(blocks_) + " is damaged: its checksum differs");
  }
  digest_.add(std::as_bytes(std::span(&head, 1)));
  digest_.add(block_);
  ++blocks_;
  at_ = 0;
  ended_ = head.length == 0;
  return !ended_;
}

void BlockReader::read(void* out, std::size_t size) {
  auto* to = static_cast<std::byte*>(out);
  while (size > 0) {
    if (at_ == block_.size() && !next_block()) fail("the tables in it end too soon");
    const std::size_t part = std::min(size, block_.size() - at_);
    std::memcpy(to, block_.data() + at_, part);
    at_ += part;
    to += part;
    size -= part;
  }
}

const std::byte* BlockReader::view(std::size_t size, std::vector<std::byte>& copy) {
  if (size <= block_.size() - at_) {
    const std::byte* out = block_.data() + at_;
    at_ += size;
    return out;
  }
  copy.resize(size);
  read(copy.data(), size);
  return copy.data();
}

void BlockReader::expect_end(std::uint64_t digest) {
  if (at_ != block_.size() || next_block()) fail("there is more in it than its tables");
  if (left_ != 0) fail(std::to_string(left_) + " bytes follow its last block");
  if (digest_.value() != digest) fail("it is not the file that the manifest names: its digest differs");
}

void write_file_atomically(const std::string& path, const std::string& temporary, const std::string& text) {
  UniqueFd file(open_own(temporary, O_WRONLY | O_CREAT | O_TRUNC, Readers::by_directory));
  check_errno(file.value(), "open", temporary);
  try {
    write_all(file.value(), text.data(), text.size(), temporary);
    check_errno(::fsync(file.value()), "fsync", temporary);
    check_errno(::close(file.release()), "close", temporary);
    check_errno(std::rename(temporary.c_str(), path.c_str()), "rename", path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory(std::filesystem::path(path).parent_path().string());
}

std::optional<std::string> read_small_file(const std::string& path, std::size_t max) {
  const OpenFile opened = open_for_reading(path);
  if (!opened.file) return std::nullopt;
  if (opened.bytes > max) {
    throw Error(ErrorKind::data, path + ": it has " + std::to_string(opened.bytes) +
                                     " bytes, more than the " + std::to_string(max) + " that are read");
  }
  std::string text(opened.bytes, '\0');
  text.resize(read_all(opened.file.value(), text.data(), text.size(), path));
  return text;
}

}  // namespace fleetrun::ps
