// Parses standard input as the slots that the arguments name, and prints what came of it: a line per row,
// each slot as its count and values (floats as their bits in hexadecimal), then "fault LINE SLOT" or "end".
//
//   parse_dump f:float:2 s:id:0 y:id:1      NAME:TYPE:WIDTH, width 0 for a sparse slot

#include <bit>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <string>

#include "dataset/multi_slot_parser.h"
#include "runtime/base/text.h"

using namespace fleetrun;

int main(int argc, char** argv) {
  std::vector<dataset::Slot> slots;
  for (int i = 1; i < argc; ++i) {
    const std::vector<std::string> parts = split(argv[i], ':');
    const std::int64_t width = std::stoll(parts.at(2));
    slots.push_back({.name = parts[0],
                     .type = parts.at(1) == "float" ? dataset::SlotType::float32 : dataset::SlotType::int64,
                     .dense = width > 0,
                     .width = width > 0 ? width : 1});
  }
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  dataset::Batch batch;
  const auto fault = dataset::parse_multi_slot(slots, text, batch);
  for (std::size_t row = 0; row < batch.rows; ++row) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const dataset::SlotValues& values = batch.slots[i];
      const auto width = static_cast<std::size_t>(slots[i].width);
      const std::size_t first = slots[i].dense ? row * width : values.offsets[row];
      const std::size_t last = slots[i].dense ? first + width : values.offsets[row + 1];
      std::cout << last - first;
      for (std::size_t at = first; at < last; ++at) {
        if (slots[i].type == dataset::SlotType::int64)
          std::cout << ' ' << std::dec << values.ints[at];
        else if (std::isnan(values.floats[at]))
          std::cout << " nan";
        else
          std::cout << ' ' << std::hex << std::bit_cast<std::uint32_t>(values.floats[at]) << std::dec;
      }
      std::cout << (i + 1 < slots.size() ? " " : "\n");
    }
  }
  if (fault)
    std::cout << "fault " << fault->line << ' ' << fault->slot << '\n';
  else
    std::cout << "end\n";
}
