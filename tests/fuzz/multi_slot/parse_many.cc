// Parses many texts, each in pieces, and prints what came of them: what differential.py compares.
//
// Standard input, for each text: a line of slots "f:float:2:1 s:id:0:1" (NAME:TYPE:WIDTH:USED, width 0 for a
// sparse slot), a line "BYTES PIECE LIMIT PREFIX…" (LIMIT of a line's bytes; prefixes of id, content,
// log_key), and the bytes. Standard output: a line per row, the prefixes, then each slot, as their count and
// values (floats as their bits, texts in hexadecimal), "bad LINE SLOT" for each bad line, and "end".

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "dataset/text/multi_slot_parser.h"
#include "runtime/base/text.h"

using namespace fleetrun;
using dataset::MultiSlotParser;

namespace {

std::vector<dataset::Slot> slots_of(const std::string& line) {
  std::vector<dataset::Slot> slots;
  for (const std::string& word : split(line, ' ')) {
    const std::vector<std::string> parts = split(word, ':');
    const std::int64_t width = std::stoll(parts.at(2));
    slots.push_back({.name = parts[0],
                     .type = parts[1] == "float" ? dataset::SlotType::float32 : dataset::SlotType::int64,
                     .dense = width > 0,
                     .width = std::max<std::int64_t>(width, 1),
                     .used = parts.at(3) == "1"});
  }
  return slots;
}

std::string hexadecimal(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    out.append(1, digits[value >> 4]).append(1, digits[value & 15]);
  }
  return out;
}

void print_prefixes(const dataset::RowPrefixes& prefixes, std::size_t row) {
  const auto count =
      int{!prefixes.ids.empty()} + int{!prefixes.contents.empty()} + int{!prefixes.log_keys.empty()};
  if (count == 0) return;
  std::cout << count << ' ';
  if (!prefixes.ids.empty()) std::cout << "id " << hexadecimal(prefixes.ids[row]) << ' ';
  if (!prefixes.contents.empty()) std::cout << "content " << hexadecimal(prefixes.contents[row]) << ' ';
  if (prefixes.log_keys.empty()) return;
  const dataset::LogKey& key = prefixes.log_keys[row];
  std::cout << "log_key " << key.search_id << ' ' << key.cmatch << ' ' << key.rank << ' ';
}

void print(const std::vector<dataset::Slot>& all_slots, const dataset::Batch& batch) {
  std::vector<dataset::Slot> slots;
  std::copy_if(all_slots.begin(), all_slots.end(), std::back_inserter(slots),
               [](const auto& slot) { return slot.used; });
  for (std::size_t row = 0; row < batch.rows; ++row) {
    print_prefixes(batch.prefixes, row);
    if (slots.empty()) std::cout << '\n';
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const dataset::SlotValues& values = batch.slots[i];
      const auto width = static_cast<std::size_t>(slots[i].width);
      const std::size_t first = slots[i].dense ? row * width : values.offsets[row];
      const std::size_t last = slots[i].dense ? first + width : values.offsets[row + 1];
      std::cout << last - first;
      for (std::size_t at = first; at < last; ++at) {
        if (slots[i].type == dataset::SlotType::int64)
          std::cout << ' ' << values.ints[at];
        else if (std::isnan(values.floats[at]))
          std::cout << " nan";
        else
          std::cout << ' ' << std::bit_cast<std::uint32_t>(values.floats[at]);
      }
      std::cout << (i + 1 < slots.size() ? " " : "\n");
    }
  }
}

void parse(const std::vector<dataset::Slot>& slots, std::string_view text, std::size_t piece,
           const dataset::MultiSlotParserOptions& options) {
  MultiSlotParser parser(slots, options);
  dataset::Batch batch;
  std::string faults;
  parser.begin_batch(batch, 7);
  for (bool ended = false, done = false; !done;) {
    switch (parser.parse()) {
      case MultiSlotParser::Outcome::full:
        parser.end_batch();
        print(slots, batch);
        parser.begin_batch(batch, 7);
        break;
      case MultiSlotParser::Outcome::bad:
        faults += "bad " + std::to_string(parser.fault().line) + " " + parser.fault().slot + "\n";
        parser.skip_bad_line();
        break;
      case MultiSlotParser::Outcome::more:
        done = ended;
        const std::string_view next = text.substr(0, piece);
        if (!done && !next.empty()) std::memcpy(parser.room().data(), next.data(), next.size());
        if (!done) parser.commit(next.size());
        text.remove_prefix(next.size());
        if (!done && text.empty()) parser.end_input();
        ended = text.empty();
        break;
    }
  }
  parser.end_batch();
  print(slots, batch);
  std::cout << faults << "end\n";
}

}  // namespace

int main() {
  std::string slots, sizes;
  while (std::getline(std::cin, slots) && std::getline(std::cin, sizes)) {
    std::istringstream words(sizes);
    std::size_t bytes = 0, piece = 1;
    dataset::MultiSlotParserOptions options;
    words >> bytes >> piece >> options.max_line_bytes;
    for (std::string word; words >> word;)
      (word == "id"        ? options.prefixes.id
       : word == "content" ? options.prefixes.content
                           : options.prefixes.log_key) = true;
    std::string text(bytes, '\0');
    std::cin.read(text.data(), static_cast<std::streamsize>(bytes));
    parse(slots_of(slots), text, piece, options);
  }
}
