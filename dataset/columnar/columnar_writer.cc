// Rows are gathered until a block is full; then each slot's values are narrowed
// to the bytes that their range needs.
#include "dataset/columnar/columnar_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/base/crc32c.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

constexpr std::size_t kMaxCount = UINT32_MAX;

[[noreturn]] void fail(const std::string& file, const std::string& what, int error) {
  throw Error(ErrorKind::host, file + " cannot be " + what + ": " + std::strerror(error),
              error == ENOSPC || error == EDQUOT ? "make room, or write to another disk" : "");
}

std::uint8_t bytes_for(std::uint64_t max) noexcept {
  return max <= UINT8_MAX ? 1 : max <= UINT16_MAX ? 2 : max <= UINT32_MAX ? 4 : 8;
}

template <class T, class Values, class Narrow>
void append_as(std::vector<std::byte>& out, const Values& values, Narrow narrow) {
  const std::size_t at = out.size();
  out.resize(at + values.size() * sizeof(T));
  std::byte* to = out.data() + at;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(narrow(values[i]));
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

template <class Values, class Narrow>
void append_narrow(std::vector<std::byte>& out, const Values& values, std::uint8_t bytes, Narrow narrow) {
  switch (bytes) {
    case 1:
      return append_as<std::uint8_t>(out, values, narrow);
    case 2:
      return append_as<std::uint16_t>(out, values, narrow);
    case 4:
      return append_as<std::uint32_t>(out, values, narrow);
    default:
      return append_as<std::uint64_t>(out, values, narrow);
  }
}

}  // namespace

/// The rows of a slot that are not written yet.
struct ColumnarWriter::Column {
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::uint32_t> counts;  // of a sparse slot

  void add(const Slot& slot, const SlotValues& values, std::size_t first_row, std::size_t end_row) {
    const auto width = static_cast<std::size_t>(slot.width);
    const std::size_t first = slot.dense ? first_row * width : values.offsets[first_row];
    const std::size_t end = slot.dense ? end_row * width : values.offsets[end_row];
    if (slot.type == SlotType::float32)
      floats.insert(floats.end(), values.floats.begin() + static_cast<std::ptrdiff_t>(first),
                    values.floats.begin() + static_cast<std::ptrdiff_t>(end));
    else
      ints.insert(ints.end(), values.ints.begin() + static_cast<std::ptrdiff_t>(first),
                  values.ints.begin() + static_cast<std::ptrdiff_t>(end));
    if (slot.dense) return;
    for (std::size_t row = first_row; row < end_row; ++row) {
      const std::size_t count = values.offsets[row + 1] - values.offsets[row];
      if (count > kMaxCount)
        throw Error(ErrorKind::data, "slot '" + printable(slot.name) + "' has a row of " +
                                         std::to_string(count) + " values; a columnar file takes " +
                                         std::to_string(kMaxCount));
      counts.push_back(static_cast<std::uint32_t>(count));
    }
  }
  void clear() noexcept {
    floats.clear();
    ints.clear();
    counts.clear();
  }
};

ColumnarWriter::ColumnarWriter(std::string path, std::vector<Slot> slots, std::uint32_t block_rows)
    : path_(std::move(path)), partial_(path_ + ".partial") {
  if (slots.empty()) throw Error(ErrorKind::config, "a columnar file without slots");
  if (block_rows == 0) throw Error(ErrorKind::config, "a columnar file with blocks without rows");
  for (const Slot& slot : slots) {
    if (slot.name.empty()) throw Error(ErrorKind::config, "a slot without a name");
    if (slot.width < 1)
      throw Error(ErrorKind::config, "slot '" + printable(slot.name) + "' has a width of " +
                                         std::to_string(slot.width) + ", less than 1");
  }
  columns_.resize(slots.size());
  footer_.slots = std::move(slots);
  footer_.block_rows = block_rows;
  open();
  write(kColumnarHead.data(), kColumnarHead.size());
  write(&kColumnarVersion, sizeof kColumnarVersion);
  write_padding();
}

ColumnarWriter::~ColumnarWriter() {
  if (file_ && !is_done_) ::unlink(partial_.c_str());
}

/// Opens the partial file and locks it; again where its last writer has renamed or removed it meanwhile.
void ColumnarWriter::open() {
  for (;;) {
    UniqueFd file(open_own(partial_, O_WRONLY | O_CREAT, Readers::by_directory));
    if (!file) fail(partial_, "made", errno);
    if (::flock(file.value(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) fail(partial_, "locked", errno);
      throw Error(ErrorKind::host, "another process is writing " + path_,
                  "wait until it has ended, or end it");
    }
    struct stat opened {
    }, named{};
    if (::fstat(file.value(), &opened) != 0) fail(partial_, "looked at", errno);
    if (::stat(partial_.c_str(), &named) != 0 || opened.st_ino != named.st_ino ||
        opened.st_dev != named.st_dev)
      continue;
    if (::ftruncate(file.value(), 0) != 0) fail(partial_, "emptied", errno);
    file_ = std::move(file);
    return;
  }
}

void ColumnarWriter::write(const void* bytes, std::size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(file_.value(), at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "written", errno);
    at += written;
    size -= static_cast<std::size_t>(written);
    offset_ += static_cast<std::uint64_t>(written);
  }
}

void ColumnarWriter::write_padding() {
  const std::array<std::byte, kColumnarAlignment> zeros{};
  write(zeros.data(), static_cast<std::size_t>(columnar_aligned(offset_) - offset_));
}

void ColumnarWriter::add(const Batch& batch) {
  for (std::size_t row = 0; row < batch.rows;) {
    const std::size_t rows = std::min<std::size_t>(batch.rows - row, footer_.block_rows - pending_rows_);
    for (std::size_t i = 0; i < columns_.size(); ++i)
      columns_[i].add(footer_.slots[i], batch.slots.at(i), row, row + rows);
    row += rows;
    pending_rows_ += static_cast<std::uint32_t>(rows);
    if (pending_rows_ == footer_.block_rows) write_block();
  }
}

void ColumnarWriter::write_block() {
  for (Column& column : columns_) {
    write_section(column, footer_.sections.emplace_back());
    column.clear();
  }
  footer_.rows += pending_rows_;
  pending_rows_ = 0;
}

void ColumnarWriter::write_section(const Column& column, ColumnarSection& section) {
  section_.clear();
  section.values = column.floats.size() + column.ints.size();
  if (!column.ints.empty()) {
    const auto [min, max] = std::minmax_element(column.ints.begin(), column.ints.end());
    const auto base = static_cast<std::uint64_t>(*min);
    section.base = *min;
    section.value_bytes = bytes_for(static_cast<std::uint64_t>(*max) - base);
    append_narrow(section_, column.ints, section.value_bytes,
                  [base](std::int64_t value) { return static_cast<std::uint64_t>(value) - base; });
  } else {
    section.value_bytes = sizeof(float);
    const auto bytes = std::as_bytes(std::span(column.floats));
    section_.assign(bytes.begin(), bytes.end());
  }
  const auto& counts = column.counts;
  const bool are_equal =
      std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
  if (!counts.empty() && (!are_equal || counts.front() == 0)) {
    section.count_bytes = bytes_for(*std::max_element(counts.begin(), counts.end()));
    append_narrow(section_, counts, section.count_bytes, [](std::uint32_t count) { return count; });
  }
  section.checksum = crc32c(section_);
  write(section_.data(), section_.size());
  write_padding();
}

ColumnarWritten ColumnarWriter::finish() {
  if (pending_rows_ > 0) write_block();
  const std::vector<std::byte> footer = encode_footer(footer_);
  ContentDigest digest;
  digest.add(footer);
  const std::array<std::uint64_t, 2> end{footer.size(), digest.value()};
  write(footer.data(), footer.size());
  write(end.data(), sizeof end);
  write(kColumnarEnd.data(), kColumnarEnd.size());
  if (::fsync(file_.value()) != 0) fail(path_, "written", errno);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail(path_, "given its name", errno);
  is_done_ = true;
  const std::string directory = std::filesystem::path(path_).parent_path().string();
  const UniqueFd folder(
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.value()) != 0) fail(path_, "made durable in its directory", errno);
  return {footer_.rows, offset_, digest.value()};
}

}  // namespace fleetrun::dataset
