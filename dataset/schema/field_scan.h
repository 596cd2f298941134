// Where the fields and the lines of a text end, found many bytes at a time.
// Which file implements it is the build's to choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fleetrun::dataset {

/// Readable bytes that find_ends() needs after the text.
inline constexpr std::size_t kScanPadding = 64;

/// Ends of fields, in order: offsets of delimiters and line feeds.
/// `lines` are those of line feeds, by their place among `fields`.
struct FieldEnds {
  std::vector<std::uint32_t> fields;
  std::vector<std::uint32_t> lines;
};

/// Adds the ends in text[from, to) to `ends`.
void find_ends(const char* text, std::size_t from, std::size_t to, char delimiter, FieldEnds& ends);

}  // namespace fleetrun::dataset
