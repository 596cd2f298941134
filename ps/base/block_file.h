// A file in checksummed blocks, made new under its name and synced, and small files replaced whole.
//
//   block  length u32 | crc32c u32 of (block number u64, length u32, payload) | payload
//   ...    the last block has length 0; nothing follows it
//
// A flipped, missing, added or reordered byte anywhere is found before the bytes of its block are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/base/content_digest.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

/// Makes the file, which must not be there yet, and locks it (flock) until it is closed: who cleans a
/// directory can tell a file that is being written from one that was left behind.
/// Throws: Error(host) naming the file when a system call fails.
/// A writer that goes without finish() removes its file.
class BlockWriter {
 public:
  explicit BlockWriter(const std::string& path);
  /// The same bytes, added to `memory`, which outlives it; finish() syncs nothing.
  explicit BlockWriter(std::vector<std::byte>& memory);
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
    std::uint64_t digest = 0;  // of the whole file (runtime/base/content_digest.h)
  };
  /// Ends the file and syncs it; the file stays locked. Nothing may be written afterwards.
  Written finish();
  /// Throws when somebody has removed the file meanwhile.
  void check_still_there() const;

 private:
  void start_block();
  void flush_block();

  std::string path_;
  UniqueFd file_;
  std::vector<std::byte>* memory_ = nullptr;  // instead of a file
  bool finished_ = false;
  std::uint64_t blocks_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t begun_ = 0;  // bytes that the disk was told to begin with
  ContentDigest digest_;
  std::vector<std::byte> block_;  // its head included
};

/// Throws: Error(data) naming the file and the block that is wrong; Error(host) when a system call fails.
class BlockReader {
 public:
  /// `bytes` is what BlockWriter::finish() returned. Takes no symbolic link, and nothing but a file.
  BlockReader(const std::string& path, std::uint64_t bytes);
  /// What a writer put into memory, which outlives this. `name` is how errors call it.
  BlockReader(std::string name, std::span<const std::byte> memory);

  void read(void* out, std::size_t size);
  template <class T>
  T value() {
    static_assert(std::is_trivially_copyable_v<T>);
    T out;
    read(&out, sizeof out);
    return out;
  }
  /// The next `size` bytes where they lie, or copied to `copy` where a block ends among them;
  /// valid until the next call.
  const std::byte* view(std::size_t size, std::vector<std::byte>& copy);
  /// Bytes of the file that were not read from it yet: what is announced to follow cannot be longer.
  std::uint64_t left() const noexcept { return left_ + (block_.size() - at_); }
  /// Throws unless everything was read, nothing follows, and the file's digest is `digest`.
  void expect_end(std::uint64_t digest);

 private:
  bool next_block();
  void read_file(void* out, std::size_t size);
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  UniqueFd file_;
  std::span<const std::byte> memory_;  // what is left of it, where there is no file
  std::uint64_t left_ = 0;
  std::uint64_t blocks_ = 0;
  ContentDigest digest_;
  bool ended_ = false;
  std::size_t at_ = 0;
  std::vector<std::byte> block_;
};

/// Replaces `path` by `text`, durably and whole or not at all, by way of `temporary` in the same directory.
void write_file_atomically(const std::string& path, const std::string& temporary, const std::string& text);

/// The text of a small file; none when there is no file. Takes no symbolic link, and nothing but a file.
/// Throws: Error(data) when it is something else or has more than `max` bytes;
/// Error(host) when it cannot be read.
std::optional<std::string> read_small_file(const std::string& path, std::size_t max);

}  // namespace fleetrun::ps
