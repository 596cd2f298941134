#include "ps/block_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "ps/crc32c.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

int open_for_writing(const std::string& path) {
  return check_errno(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), "open", path);
}

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

// After this the name survives a crash of the host.
void sync_directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const int file =
      check_errno(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", directory);
  const int result = ::fsync(file);
  const int error = errno;
  ::close(file);
  errno = error;
  check_errno(result, "fsync", directory);
}

void put_in_place(const std::string& temporary, const std::string& path) {
  check_errno(std::rename(temporary.c_str(), path.c_str()), "rename", path);
  sync_directory_of(path);
}

struct BlockHead {
  std::uint32_t length = 0;
  std::uint32_t checksum = 0;
};

std::uint32_t checksum_of(std::uint64_t number, std::uint32_t length, std::span<const std::byte> payload) {
  std::uint32_t crc = crc32c(std::as_bytes(std::span(&number, 1)));
  crc = crc32c(std::as_bytes(std::span(&length, 1)), crc);
  return crc32c(payload, crc);
}

// The checksum of a file follows from those of its blocks.
std::uint32_t add_to(std::uint32_t file_checksum, const BlockHead& head) {
  return crc32c(std::as_bytes(std::span(&head, 1)), file_checksum);
}

}  // namespace

BlockWriter::BlockWriter(const std::string& path)
    : path_(path), temporary_(path + ".tmp"), file_(open_for_writing(temporary_)) {
  block_.reserve(kBlockBytes);
}

BlockWriter::~BlockWriter() {
  if (file_ == -1) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void BlockWriter::write(const void* bytes, std::size_t size) {
  const auto* at = static_cast<const std::byte*>(bytes);
  while (size > 0) {
    const std::size_t part = std::min(size, kBlockBytes - block_.size());
    block_.insert(block_.end(), at, at + part);
    at += part;
    size -= part;
    if (block_.size() == kBlockBytes) flush_block();
  }
}

void BlockWriter::flush_block() {
  BlockHead head;
  head.length = static_cast<std::uint32_t>(block_.size());
  head.checksum = checksum_of(blocks_++, head.length, block_);
  write_all(file_, &head, sizeof head, temporary_);
  write_all(file_, block_.data(), block_.size(), temporary_);
  written_.bytes += sizeof head + block_.size();
  written_.checksum = add_to(written_.checksum, head);
  block_.clear();
}

BlockWriter::Written BlockWriter::finish() {
  if (!block_.empty()) flush_block();
  flush_block();  // the empty one that ends the file
  check_errno(::fsync(file_), "fsync", temporary_);
  check_errno(::close(std::exchange(file_, -1)), "close", temporary_);
  put_in_place(temporary_, path_);
  return written_;
}

BlockReader::BlockReader(const std::string& path, std::uint64_t bytes) : path_(path) {
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ == -1 && errno == ENOENT) fail("the file is not there");
  check_errno(file_, "open", path);
  struct stat status {};
  const int result = ::fstat(file_, &status);
  left_ = static_cast<std::uint64_t>(status.st_size);
  if (result == 0 && left_ == bytes) return;
  ::close(std::exchange(file_, -1));
  check_errno(result, "fstat", path);
  fail("it has " + std::to_string(left_) + " bytes, the manifest says " + std::to_string(bytes));
}

BlockReader::~BlockReader() {
  if (file_ != -1) ::close(file_);
}

void BlockReader::fail(const std::string& what) const {
  throw Error(ErrorKind::data, path_ + ": " + what);
}

void BlockReader::read_file(void* out, std::size_t size) {
  if (size > left_) fail("the file ends within block " + std::to_string(blocks_));
  char* at = static_cast<char*>(out);
  for (std::size_t left = size; left > 0;) {
    const ssize_t done = ::read(file_, at, left);
    if (done < 0 && errno == EINTR) continue;
    check_errno(done < 0 ? -1 : 0, "read", path_);
    if (done == 0) fail("the file ends within block " + std::to_string(blocks_));
    at += done;
    left -= static_cast<std::size_t>(done);
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
  checksum_ = add_to(checksum_, head);
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

void BlockReader::expect_end(std::uint32_t checksum) {
  if (at_ != block_.size() || next_block()) fail("there is more in it than its tables");
  if (left_ != 0) fail(std::to_string(left_) + " bytes follow its last block");
  if (checksum_ != checksum) fail("its checksum is not the one in the manifest");
}

void write_file_atomically(const std::string& path, const std::string& temporary, const std::string& text) {
  const int file = open_for_writing(temporary);
  try {
    write_all(file, text.data(), text.size(), temporary);
    check_errno(::fsync(file), "fsync", temporary);
  } catch (...) {
    ::close(file);
    ::unlink(temporary.c_str());
    throw;
  }
  check_errno(::close(file), "close", temporary);
  put_in_place(temporary, path);
}

}  // namespace fleetrun::ps
