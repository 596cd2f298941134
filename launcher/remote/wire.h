// Values as bytes, for what launchers tell each other through pipes: numbers little-endian, a string or list
// with its length before it. A reader checks every length before anything is made of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher::remote {

class Writer {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void i32(std::int32_t value) { u32(static_cast<std::uint32_t>(value)); }
  void boolean(bool value) { u8(value ? 1 : 0); }
  void string(std::string_view value);
  void strings(const std::vector<std::string>& values);
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Throws: Error(data) where the bytes do not hold what is asked for.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}  // borrowed

  std::uint8_t u8();
  std::uint32_t u32();
  std::uint64_t u64();
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  bool boolean();
  std::string string();
  std::vector<std::string> strings();
  /// A number of things of `min` bytes each, all of which may still be there.
  std::size_t count(std::size_t min);
  /// All of it has been read.
  void end() const;

 private:
  std::string_view take(std::size_t bytes);
  std::string_view rest_;
};

}  // namespace fleetrun::launcher::remote
