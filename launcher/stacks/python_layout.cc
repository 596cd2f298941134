#include "launcher/stacks/python_layout.h"

#include <algorithm>
#include <array>

namespace fleetrun::launcher {
namespace {

constexpr std::uint64_t kCookie = 0x7970677562656478;  // "xdebugpy"
constexpr std::uint64_t kMostBytes = 1 << 20;          // of an offset: the runtime is smaller

constexpr PythonLayout kUntil39 = {.first_interpreter = 32,
                                   .next_interpreter = 0,
                                   .threads = 8,
                                   .next_thread = 8,
                                   .frames = 24,
                                   .current_frame = {},
                                   .previous = 24,
                                   .code = 32,
                                   .instruction = 104,
                                   .owner = {},
                                   .file = 104,
                                   .name = 112,
                                   .lines = 120,
                                   .first_line = 40,
                                   .bytecode = 0,
                                   .text = 48,
                                   .wide_text = 72};

constexpr PythonLayout k311 = {.first_interpreter = 40,
                               .next_interpreter = 0,
                               .threads = 16,
                               .next_thread = 8,
                               .frames = 56,
                               .current_frame = 8,
                               .previous = 48,
                               .code = 32,
                               .instruction = 56,
                               .owner = 69,
                               .file = 112,
                               .name = 128,
                               .lines = 136,
                               .first_line = 72,
                               .bytecode = 184,
                               .text = 48,
                               .wide_text = 72};

constexpr PythonLayout k312 = {.first_interpreter = 40,
                               .next_interpreter = 0,
                               .threads = 72,
                               .next_thread = 8,
                               .frames = 56,
                               .current_frame = 0,
                               .previous = 8,
                               .code = 0,
                               .instruction = 56,
                               .owner = 70,
                               .file = 112,
                               .name = 128,
                               .lines = 136,
                               .first_line = 68,
                               .bytecode = 192,
                               .text = 40,
                               .wide_text = 56};

/// Takes numbers of seven bits, least significant six first, from a table of 3.11 or later.
struct Varints {
  std::span<const std::uint8_t> bytes;
  std::size_t at;

  std::uint64_t next() {
    std::uint64_t value = 0;
    for (int shift = 0; at < bytes.size() && shift < 60; shift += 6) {
      const std::uint8_t byte = bytes[at++];
      value |= std::uint64_t{byte & 0x3fu} << shift;
      if ((byte & 0x40) == 0) break;
    }
    return value;
  }
  int next_signed() {
    const std::uint64_t value = next();
    const int size = static_cast<int>(value >> 1);
    return (value & 1) != 0 ? -size : size;
  }
};

/// Pairs of bytes of code and lines that come after them.
int line_until_39(std::span<const std::uint8_t> table, int line, long offset) {
  long begin = 0;
  for (std::size_t at = 0; at + 1 < table.size(); at += 2) {
    begin += table[at];
    if (begin > offset) break;
    line += static_cast<std::int8_t>(table[at + 1]);
  }
  return line;
}

/// Pairs of bytes of code and the lines before them; -128: code without a line.
int line_of_310(std::span<const std::uint8_t> table, int line, long offset) {
  long end = 0;
  for (std::size_t at = 0; at + 1 < table.size(); at += 2) {
    const auto step = static_cast<std::int8_t>(table[at + 1]);
    if (step != -128) line += step;
    end += table[at];
    if (end > offset) break;
  }
  return line;
}

/// Entries: a byte with its highest bit set, kind and units of code, then what the kind has: columns, and
/// from 10 to 14 how many lines further it is.
int line_since_311(std::span<const std::uint8_t> table, int line, long offset) {
  long end = 0;
  for (std::size_t at = 0; at < table.size();) {
    const int kind = table[at] >> 3 & 15;
    end += ((table[at] & 7) + 1) * 2;
    if (kind == 13 || kind == 14) line += Varints{table, at + 1}.next_signed();
    if (kind >= 10 && kind <= 12) line += kind - 10;
    if (end > offset) break;
    do ++at;
    while (at < table.size() && (table[at] & 0x80) == 0);
  }
  return line;
}

}  // namespace

std::optional<PythonLayout> python_layout(PythonVersion version) {
  if (version == PythonVersion{3, 8} || version == PythonVersion{3, 9}) return kUntil39;
  if (version == PythonVersion{3, 10}) {
    PythonLayout layout = kUntil39;
    layout.instruction = 96;
    return layout;
  }
  if (version == PythonVersion{3, 11}) return k311;
  if (version == PythonVersion{3, 12}) return k312;
  return {};
}

std::optional<PythonLayout> told_python_layout(PythonVersion version, std::span<const std::uint64_t> words) {
  if (words.size() < kToldWords || words[0] != kCookie || words[2] != 0) return {};
  // 3.14 tells three things more of an interpreter, and two more of a frame.
  const bool is_313 = version == PythonVersion{3, 13};
  if (!is_313 && version != PythonVersion{3, 14}) return {};
  const auto thread = words.subspan(is_313 ? 19 : 22);
  const auto frame = thread.subspan(9);
  const auto code = frame.subspan(is_313 ? 6 : 8);
  const PythonLayout layout = {.first_interpreter = words[5],
                               .next_interpreter = words[8],
                               .threads = words[9],
                               .next_thread = thread[2],
                               .frames = thread[4],
                               .current_frame = {},
                               .previous = frame[1],
                               .code = frame[2],
                               .instruction = frame[3],
                               .owner = frame[5],
                               .file = code[1],
                               .name = code[3],
                               .lines = code[4],
                               .first_line = code[5],
                               .bytecode = code[9],
                               .text = 40,
                               .wide_text = 56};
  const std::array all = {layout.first_interpreter,
                          layout.next_interpreter,
                          layout.threads,
                          layout.next_thread,
                          layout.frames,
                          layout.previous,
                          layout.code,
                          layout.instruction,
                          layout.file,
                          layout.name,
                          layout.lines,
                          layout.first_line,
                          layout.bytecode};
  if (std::ranges::max(all) > kMostBytes) return {};
  return layout;
}

int python_line(PythonVersion version, std::span<const std::uint8_t> table, int first_line, long offset) {
  if (version < PythonVersion{3, 10}) return line_until_39(table, first_line, offset);
  if (version == PythonVersion{3, 10}) return line_of_310(table, first_line, offset);
  return line_since_311(table, first_line, offset);
}

}  // namespace fleetrun::launcher
