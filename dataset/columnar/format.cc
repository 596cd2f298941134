#include "dataset/columnar/format.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

template <class T>
void put(std::vector<std::byte>& out, T value) {
  static_assert(std::is_integral_v<T>);
  const std::size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

/// Takes numbers off the front of a footer; a footer that ends early is an error.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take_bytes(std::size_t size) {
    if (size > bytes_.size()) refuse("its index ends early");
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  std::size_t left() const noexcept { return bytes_.size(); }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::data, file_ + " is damaged: " + what, "write it again with fleetrun data convert");
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& file_;
};

constexpr std::size_t kSectionBytes = 24;

Slot take_slot(Cursor& cursor) {
  Slot slot;
  const auto type = cursor.take<std::uint8_t>();
  const auto dense = cursor.take<std::uint8_t>();
  const auto zero = cursor.take<std::uint16_t>();
  const auto name_bytes = cursor.take<std::uint32_t>();
  const auto width = cursor.take<std::uint64_t>();
  const auto name = cursor.take_bytes(name_bytes);
  slot.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  if (type > 1 || dense > 1 || zero != 0 || width < 1 || width > INT64_MAX || name.empty())
    cursor.refuse("slot '" + printable(slot.name) + "' is of an unknown kind");
  slot.type = type == 1 ? SlotType::float32 : SlotType::int64;
  slot.dense = dense == 1;
  slot.width = static_cast<std::int64_t>(width);
  return slot;
}

bool is_width(std::uint8_t bytes, bool is_float) noexcept {
  return is_float ? bytes == 4 : bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

/// `max`: bytes that sections have in all.
ColumnarSection take_section(Cursor& cursor, const Slot& slot, std::uint64_t rows, std::uint64_t max) {
  ColumnarSection section;
  section.values = cursor.take<std::uint64_t>();
  section.base = cursor.take<std::int64_t>();
  section.checksum = cursor.take<std::uint32_t>();
  section.value_bytes = cursor.take<std::uint8_t>();
  section.count_bytes = cursor.take<std::uint8_t>();
  const bool are_counts = section.count_bytes == 0 || section.count_bytes == 1 || section.count_bytes == 2 ||
                          section.count_bytes == 4;
  if (cursor.take<std::uint16_t>() != 0 || !are_counts ||
      !is_width(section.value_bytes, slot.type == SlotType::float32))
    cursor.refuse("slot '" + printable(slot.name) + "' has values of an unknown size");
  // In this order: the products must not overflow. Every row has a count or a value that takes room.
  if (section.values > max || rows > max || section.bytes(rows) > max)
    cursor.refuse("slot '" + printable(slot.name) + "' has more values than the file has room for");
  const auto width = static_cast<std::uint64_t>(slot.width);
  const bool is_even = section.values >= rows && section.values % rows == 0;
  const bool fits = slot.dense ? section.values / rows == width && is_even && section.count_bytes == 0
                               : is_even || section.count_bytes != 0;
  if (!fits)
    cursor.refuse("slot '" + printable(slot.name) + "' has " + std::to_string(section.values) +
                  " values in " + std::to_string(rows) + " rows");
  return section;
}

}  // namespace

std::vector<std::byte> encode_footer(const ColumnarFooter& footer) {
  std::vector<std::byte> out;
  put(out, static_cast<std::uint32_t>(footer.slots.size()));
  put(out, footer.block_rows);
  put(out, footer.rows);
  for (const Slot& slot : footer.slots) {
    put(out, static_cast<std::uint8_t>(slot.type == SlotType::float32));
    put(out, static_cast<std::uint8_t>(slot.dense));
    put(out, std::uint16_t{0});
    put(out, static_cast<std::uint32_t>(slot.name.size()));
    put(out, static_cast<std::uint64_t>(slot.width));
    const auto name = std::as_bytes(std::span(slot.name.data(), slot.name.size()));
    out.insert(out.end(), name.begin(), name.end());
  }
  for (const ColumnarSection& section : footer.sections) {
    put(out, section.values);
    put(out, section.base);
    put(out, section.checksum);
    put(out, section.value_bytes);
    put(out, section.count_bytes);
    put(out, std::uint16_t{0});
  }
  return out;
}

ColumnarFooter decode_footer(std::span<const std::byte> bytes, std::uint64_t sections_bytes,
                             const std::string& file) {
  Cursor cursor(bytes, file);
  ColumnarFooter footer;
  const auto slots = cursor.take<std::uint32_t>();
  footer.block_rows = cursor.take<std::uint32_t>();
  footer.rows = cursor.take<std::uint64_t>();
  if (slots == 0 || footer.block_rows == 0) cursor.refuse("it has no slots, or blocks without rows");
  for (std::uint32_t i = 0; i < slots; ++i) footer.slots.push_back(take_slot(cursor));
  const std::uint64_t blocks = footer.blocks();
  if (blocks > cursor.left() || blocks * slots != cursor.left() / kSectionBytes ||
      cursor.left() % kSectionBytes != 0)
    cursor.refuse("its index does not have its " + std::to_string(blocks) + " blocks of " +
                  std::to_string(slots) + " slots");
  std::uint64_t end = 0;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    for (const Slot& slot : footer.slots) {
      footer.sections.push_back(take_section(cursor, slot, footer.rows_of(block), sections_bytes));
      end = columnar_aligned(end + footer.sections.back().bytes(footer.rows_of(block)));
      if (end > sections_bytes) cursor.refuse("its blocks do not fit into it");
    }
  }
  if (end != sections_bytes) cursor.refuse("there are bytes in it that belong to no block");
  return footer;
}

}  // namespace fleetrun::dataset
