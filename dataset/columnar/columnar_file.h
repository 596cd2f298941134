// A columnar file (format.h) that is open for reading.
//
// Sections are read, not mapped: a page of a map that the file lost meanwhile (somebody cut it, the disk
// failed) would end the process with SIGBUS, where a read says what is missing; and what a checksum was made
// of is then a copy that nobody changes afterwards. The price is that copy, from the page cache into the
// processor's: tests/bench/dataset_columnar_bench.cc measures both.
//
// Threads: any number, once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataset/columnar/format.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::dataset {

class ColumnarFile {
 public:
  /// Checks all but the sections. Throws: Error(data) with the file and why it is not a columnar file.
  explicit ColumnarFile(std::string path);

  const std::string& path() const noexcept { return path_; }
  const std::vector<Slot>& slots() const noexcept { return footer_.slots; }
  std::uint64_t rows() const noexcept { return footer_.rows; }
  std::uint64_t blocks() const noexcept { return footer_.blocks(); }
  std::uint64_t rows_of(std::uint64_t block) const noexcept { return footer_.rows_of(block); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Equal for files with equal examples in equal blocks.
  std::uint64_t digest() const noexcept { return digest_; }

  const ColumnarSection& section(std::uint64_t block, std::size_t slot) const noexcept {
    return footer_.sections[block * footer_.slots.size() + slot];
  }
  /// Fills `out` with the bytes of a section. Throws: Error(data) naming file, block and slot where they are
  /// not there any more or, with `verify`, are not what was written.
  void read(std::uint64_t block, std::size_t slot, bool verify, std::vector<std::byte>& out) const;
  /// The block will be read soon.
  void announce(std::uint64_t block) const noexcept;

  /// Throws Error(data) about a block.
  [[noreturn]] void refuse(std::uint64_t block, std::size_t slot, const std::string& what) const;

 private:
  void check_ends(std::uint64_t& footer_bytes);
  std::uint64_t offset_of(std::uint64_t block, std::size_t slot) const noexcept {
    return offsets_[block * footer_.slots.size() + slot];
  }

  std::string path_;
  UniqueFd file_;
  std::uint64_t bytes_ = 0;
  std::uint64_t digest_ = 0;
  ColumnarFooter footer_;
  std::vector<std::uint64_t> offsets_;  // as footer_.sections, and the footer's own
};

/// The numbers of the slots `wanted` in the file. Throws:
/// Error(config) for one that it does not have, or has otherwise.
std::vector<std::size_t> find_slots(const ColumnarFile& file, const std::vector<Slot>& wanted);

/// Whether the name is that of a columnar file.
bool is_columnar(const std::string& file) noexcept;

}  // namespace fleetrun::dataset
