// A file in checksummed blocks, written whole or not at all: to a temporary name, synced, renamed, and the
// directory synced.
//
//   block  length u32 | crc32c u32 of (block number u64, length u32, payload) | payload
//   ...    the last block has length 0; nothing follows it
//
// A flipped, missing, added or reordered byte anywhere is found before the bytes of its block are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace fleetrun::ps {

/// Throws: Error(host) naming the file when a system call fails. A writer that goes without finish() removes
/// its temporary file.
class BlockWriter {
 public:
  explicit BlockWriter(const std::string& path);
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  void write(const void* bytes, std::size_t size);
  template <class T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    write(&value, sizeof value);
  }

  struct Written {
    std::uint64_t bytes = 0;
    std::uint32_t checksum = 0;  // of the whole file
  };
  Written finish();

 private:
  void flush_block();

  std::string path_;
  std::string temporary_;
  int file_ = -1;
  std::uint64_t blocks_ = 0;
  Written written_;
  std::vector<std::byte> block_;
};

/// Throws: Error(data) naming the file and the block that is wrong; Error(host) when a system call fails.
class BlockReader {
 public:
  /// `bytes` and `checksum` are what BlockWriter::finish() returned.
  BlockReader(const std::string& path, std::uint64_t bytes);
  ~BlockReader();
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  void read(void* out, std::size_t size);
  template <class T>
  T value() {
    static_assert(std::is_trivially_copyable_v<T>);
    T out;
    read(&out, sizeof out);
    return out;
  }
  /// Throws unless everything was read, nothing follows, and the file's checksum is `checksum`.
  void expect_end(std::uint32_t checksum);

 private:
  bool next_block();
  void read_file(void* out, std::size_t size);
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  int file_ = -1;
  std::uint64_t left_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint32_t checksum_ = 0;
  bool ended_ = false;
  std::size_t at_ = 0;
  std::vector<std::byte> block_;
};

/// Replaces `path` by `text`, durably and whole or not at all, by way of `temporary` in the same directory.
void write_file_atomically(const std::string& path, const std::string& temporary, const std::string& text);

}  // namespace fleetrun::ps
