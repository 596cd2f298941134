#include "dataset/columnar/columnar_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/base/content_digest.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

constexpr const char* kAgain = "write it again with fleetrun data convert";

[[noreturn]] void refuse_file(const std::string& file, const std::string& what) {
  throw Error(ErrorKind::data, file + " " + what, kAgain);
}

/// All of `out` from `offset` on; false where the file ends before. Throws: Error(data).
bool read_all(int fd, std::span<std::byte> out, std::uint64_t offset, const std::string& file) {
  while (!out.empty()) {
    const ssize_t count = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw Error(ErrorKind::data,
                  file + ": read failed at byte " + std::to_string(offset) + ": " + std::strerror(errno));
    if (count == 0) return false;
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return true;
}

bool is_text(std::span<const std::byte> bytes, std::string_view text) noexcept {
  return std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

std::string kind_of(const Slot& slot) {
  const std::string type = slot.type == SlotType::int64 ? "int64" : "float32";
  return slot.dense ? type + " with " + std::to_string(slot.width) +
                          (slot.width == 1 ? " value" : " values") + " in each row"
                    : type + " with any number of values";
}

/// Which slot of `file` is `wanted`. Throws: Error(config).
std::size_t find_slot(const ColumnarFile& file, const Slot& wanted) {
  const auto& slots = file.slots();
  const auto found =
      std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.name == wanted.name; });
  if (found == slots.end()) {
    std::vector<std::string> names;
    for (const Slot& slot : slots) names.push_back(printable(slot.name));
    throw Error(ErrorKind::config, file.path() + " has no slot '" + printable(wanted.name) + "'",
                "it has " + join(names, ", "));
  }
  const bool is_same = found->type == wanted.type && found->dense == wanted.dense &&
                       (!wanted.dense || found->width == wanted.width);
  if (!is_same)
    throw Error(ErrorKind::config,
                "slot '" + printable(wanted.name) + "' is " + kind_of(wanted) + ", in " + file.path() +
                    " it is " + kind_of(*found),
                "declare it as it is there, or convert the text again");
  return static_cast<std::size_t>(found - slots.begin());
}

}  // namespace

bool is_columnar(const std::string& file) noexcept {
  return file.ends_with(kColumnarSuffix);
}

ColumnarFile::ColumnarFile(std::string path) : path_(std::move(path)) {
  file_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file_ || ::fstat(file_.value(), &status) != 0)
    throw Error(ErrorKind::data, path_ + " cannot be read: " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw Error(ErrorKind::data, path_ + " is not a regular file");
  bytes_ = static_cast<std::uint64_t>(status.st_size);
  std::uint64_t footer_bytes = 0;
  check_ends(footer_bytes);
  const std::uint64_t footer_at = bytes_ - kColumnarEndBytes - footer_bytes;
  std::vector<std::byte> footer(footer_bytes);
  if (!read_all(file_.value(), footer, footer_at, path_))
    refuse_file(path_, "became shorter while it was read");
  ContentDigest digest;
  digest.add(footer);
  if (digest.value() != digest_) refuse_file(path_, "is damaged: its index is not what was written");
  footer_ = decode_footer(footer, footer_at - kColumnarHeadBytes, path_);
  std::uint64_t at = kColumnarHeadBytes;
  for (std::size_t i = 0; i < footer_.sections.size(); ++i) {
    offsets_.push_back(at);
    at = columnar_aligned(at + footer_.sections[i].bytes(footer_.rows_of(i / footer_.slots.size())));
  }
  offsets_.push_back(at);
}

/// Head and end.
void ColumnarFile::check_ends(std::uint64_t& footer_bytes) {
  std::array<std::byte, kColumnarHeadBytes> head{};
  std::array<std::byte, kColumnarEndBytes> end{};
  if (bytes_ < kColumnarHead.size() ||
      !read_all(file_.value(), std::span(head).first(kColumnarHead.size()), 0, path_) ||
      !is_text(head, kColumnarHead))
    refuse_file(path_, "is not a columnar file: it does not begin with " + std::string(kColumnarHead));
  if (bytes_ < head.size() + end.size() || !read_all(file_.value(), head, 0, path_) ||
      !read_all(file_.value(), end, bytes_ - end.size(), path_) ||
      !is_text(std::span(end).last(kColumnarEnd.size()), kColumnarEnd))
    refuse_file(path_,
                "is half a columnar file: its end is missing after " + std::to_string(bytes_) + " bytes");
  std::uint32_t version = 0;
  std::memcpy(&version, head.data() + kColumnarHead.size(), sizeof version);
  if (version != kColumnarVersion)
    refuse_file(path_, "has version " + std::to_string(version) +
                           " of the format, this program reads version " + std::to_string(kColumnarVersion));
  std::memcpy(&footer_bytes, end.data(), sizeof footer_bytes);
  std::memcpy(&digest_, end.data() + sizeof footer_bytes, sizeof digest_);
  const std::uint64_t room = bytes_ - head.size() - end.size();
  if (footer_bytes > room || (room - footer_bytes) % kColumnarAlignment != 0)
    refuse_file(path_,
                "is damaged: an index of " + std::to_string(footer_bytes) + " bytes has no place in it");
}

void ColumnarFile::refuse(std::uint64_t block, std::size_t slot, const std::string& what) const {
  throw Error(ErrorKind::data,
              path_ + ": block " + std::to_string(block) + ", slot '" + printable(footer_.slots[slot].name) +
                  "' " + what,
              kAgain);
}

void ColumnarFile::read(std::uint64_t block, std::size_t slot, bool verify,
                        std::vector<std::byte>& out) const {
  const ColumnarSection& wanted = section(block, slot);
  out.resize(wanted.bytes(rows_of(block)));
  if (!read_all(file_.value(), out, offset_of(block, slot), path_))
    refuse(block, slot, "is no longer in the file: it was truncated while it was read");
  if (verify && crc32c(out) != wanted.checksum) refuse(block, slot, "is damaged: its checksum differs");
}

void ColumnarFile::announce(std::uint64_t block) const noexcept {
  if (block >= blocks()) return;
  const std::uint64_t begin = offset_of(block, 0);
  const std::uint64_t end = offsets_[(block + 1) * footer_.slots.size()];
  ::posix_fadvise(file_.value(), static_cast<off_t>(begin), static_cast<off_t>(end - begin),
                  POSIX_FADV_WILLNEED);
}

std::vector<std::size_t> find_slots(const ColumnarFile& file, const std::vector<Slot>& wanted) {
  std::vector<std::size_t> found;
  for (const Slot& slot : wanted) found.push_back(find_slot(file, slot));
  return found;
}

}  // namespace fleetrun::dataset
