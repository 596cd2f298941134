// Any bytes, as MultiSlot text: no crash, no more memory than the text is worth, the same result however it
// is cut, and what was read, printed, reads the same. Where bad lines are passed over,
// what is left is the good ones.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target; multi_slot_replay runs it over the corpus in
// every build. The first byte chooses the slots, the second the cut,
// the third what every line begins with and which slots are used.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "dataset/text/multi_slot_parser.h"

using namespace fleetrun::dataset;

namespace {

LinePrefixes prefixes_of(unsigned choice) {
  return {.id = (choice & 1) != 0, .content = (choice & 2) != 0, .log_key = (choice & 4) != 0};
}

std::vector<Slot> slots_of(unsigned choice, unsigned unused) {
  std::vector<Slot> slots;
  for (unsigned i = 0; i <= choice % 4; ++i) {
    const unsigned bits = choice >> (2 + i);
    slots.push_back({.name = std::string(1, static_cast<char>('a' + i)),
                     .type = bits & 1 ? SlotType::float32 : SlotType::int64,
                     .dense = (bits & 2) != 0,
                     .width = (bits & 2) != 0 ? 1 + choice % 3 : 1,
                     .used = ((unused >> i) & 1) == 0});
  }
  return slots;
}

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "multi_slot_fuzz: %s\n", what);
  std::abort();
}

/// Bits, so that a nan equals itself.
bool same(const Batch& a, const Batch& b) {
  if (a.rows != b.rows || a.slots.size() != b.slots.size() || a.prefixes != b.prefixes) return false;
  for (std::size_t i = 0; i < a.slots.size(); ++i) {
    const SlotValues &x = a.slots[i], &y = b.slots[i];
    if (x.ints != y.ints || x.offsets != y.offsets || x.floats.size() != y.floats.size()) return false;
    if (!x.floats.empty() &&
        std::memcmp(x.floats.data(), y.floats.data(), x.floats.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

/// Feeds the text in pieces; the places of bad lines, all of them (`skip`) or the first,
/// which then is the end.
std::string parse_in_pieces(MultiSlotParser& parser, std::string_view text, std::size_t piece, bool skip,
                            Batch& batch) {
  std::string faults;
  parser.begin_input();
  parser.begin_batch(batch, SIZE_MAX / 2);
  for (bool ended = false;;) {
    const auto outcome = parser.parse();
    if (outcome == MultiSlotParser::Outcome::bad) {
      faults += to_string(parser.fault()) + "\n";
      if (!skip) break;
      parser.skip_bad_line();
      continue;
    }
    if (ended) break;
    const std::string_view next = text.substr(0, piece);
    if (!next.empty()) std::memcpy(parser.room().data(), next.data(), next.size());
    parser.commit(next.size());
    text.remove_prefix(next.size());
    ended = text.empty();
    if (ended) parser.end_input();
  }
  parser.end_batch();
  return faults;
}

/// The lines that are good by themselves.
std::string good_lines(MultiSlotParser& parser, std::string_view text) {
  std::string good;
  Batch batch;
  while (!text.empty()) {
    const std::size_t feed = text.find('\n');
    const std::string line = std::string(text.substr(0, feed)) + "\n";
    if (parse_in_pieces(parser, line, line.size(), false, batch).empty()) good += line;
    text.remove_prefix(feed == text.npos ? text.size() : feed + 1);
  }
  return good;
}

/// The used slots of the batch as text, its prefixes before them.
/// An id is lost where a log key stands in its place.
std::string print(const std::vector<Slot>& slots, LinePrefixes prefixes, const Batch& batch) {
  std::string text;
  char word[64];
  for (std::size_t row = 0; row < batch.rows; ++row) {
    if (prefixes.id) text.append("1 ").append(batch.prefixes.ids[row]).append(" ");
    if (prefixes.content) text.append("1 ").append(batch.prefixes.contents[row]).append(" ");
    if (prefixes.log_key) text.append("1 ").append(batch.prefixes.ids[row]).append(" ");
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto width = static_cast<std::size_t>(slots[i].width);
      const SlotValues& values = batch.slots[i];
      const std::size_t first = slots[i].dense ? row * width : values.offsets[row];
      const std::size_t last = slots[i].dense ? first + width : values.offsets[row + 1];
      text.append(std::to_string(last - first));
      for (std::size_t at = first; at < last; ++at) {
        if (slots[i].type == SlotType::int64)
          std::snprintf(word, sizeof word, " %" PRId64, values.ints[at]);
        else
          std::snprintf(word, sizeof word, " %.9g", static_cast<double>(values.floats[at]));
        text.append(word);
      }
      text.append(" ");
    }
    text.append("\n");
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::vector<Slot> slots = slots_of(data[0], data[2] >> 3);
  const LinePrefixes prefixes = prefixes_of(data[2]);
  const std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);
  Batch whole, pieces, skipped, good, again;
  const auto fault = parse_multi_slot(slots, text, whole, prefixes);
  const std::size_t piece = 1 + data[1] % 64;
  MultiSlotParser parser(slots, {.prefixes = prefixes});
  if (parse_in_pieces(parser, text, piece, false, pieces) != (fault ? to_string(*fault) + "\n" : ""))
    broken("the fault depends on the cut");
  if (!same(whole, pieces)) broken("the values depend on the cut");
  parse_in_pieces(parser, text, piece, true, skipped);
  if (!parse_in_pieces(parser, good_lines(parser, text), text.size() + 1, true, good).empty())
    broken("good lines are bad beside each other");
  if (!same(skipped, good)) broken("what is left without the bad lines is not the good ones");
  std::vector<Slot> used;
  for (const Slot& slot : slots)
    if (slot.used) used.push_back(slot);
  if (used.empty()) return 0;
  if (parse_multi_slot(used, print(used, prefixes, whole), again, prefixes))
    broken("what was printed does not read");
  if (!same(whole, again)) broken("what was printed reads as something else");
  return 0;
}
