// Writes a columnar file (format.h). Until finish() it is FILE.partial, locked, so that nobody takes half a
// file for a whole one and two writers of one file do not meet;
// what a writer that was killed left behind, the next one replaces.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/base/batch.h"
#include "dataset/columnar/format.h"
#include "runtime/base/content_digest.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::dataset {

inline constexpr std::uint32_t kColumnarBlockRows = 8192;

struct ColumnarWritten {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;
};

class ColumnarWriter {
 public:
  /// Throws: Error(config) for slots that no file can have; Error(host) when a system call fails, and when
  /// another process writes the same file.
  ColumnarWriter(std::string path, std::vector<Slot> slots, std::uint32_t block_rows = kColumnarBlockRows);
  /// Removes what was written, unless finish() was.
  ~ColumnarWriter();
  ColumnarWriter(const ColumnarWriter&) = delete;
  ColumnarWriter& operator=(const ColumnarWriter&) = delete;

  /// Shape: as of the slots. Keeps up to one block in memory. Throws: Error(host) when the disk is full.
  void add(const Batch& batch);
  /// The file has its name, and will have it after a power loss. Nothing may be added afterwards.
  ColumnarWritten finish();

 private:
  struct Column;
  void open();
  void write_block();
  void write_section(const Column& column, ColumnarSection& section);
  void write(const void* bytes, std::size_t size);
  void write_padding();

  const std::string path_;
  const std::string partial_;
  UniqueFd file_;
  bool is_done_ = false;
  ColumnarFooter footer_;
  std::vector<Column> columns_;
  std::uint32_t pending_rows_ = 0;  // of the block that is being filled
  std::uint64_t offset_ = 0;        // of the file
  std::vector<std::byte> section_;  // a section as it is written
};

}  // namespace fleetrun::dataset
