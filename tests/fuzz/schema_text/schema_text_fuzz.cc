// Any bytes, as delimited text under a schema: no crash, the same result however it is cut, and the same
// values straight to batches as by way of MultiSlot text.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target; schema_text_replay runs it over the corpus
// in every build. The first byte chooses the schema, the second the cut.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/schema/schema.h"
#include "dataset/schema/schema_parser.h"
#include "dataset/schema/schema_printer.h"
#include "dataset/text/multi_slot_parser.h"

using namespace fleetrun::dataset;

namespace {

constexpr std::string_view kSchemas[] = {
    R"({"delimiter": "\t", "columns": ["label", "I1..I2", "C1..C2"], "slots": [
        {"name": "dense", "type": "float32", "columns": ["I1..I2"], "missing": 0, "steps": ["log"]},
        {"each": ["C1..C2"], "type": "int64", "steps": [{"hash": "crc32", "prefix": "{column}=", "modulo": 1000001}]},
        {"name": "label", "type": "int64", "columns": ["label"]}]})",
    R"({"delimiter": ",", "columns": ["a", "b"], "slots": [
        {"name": "x", "type": "float32", "columns": ["a"], "steps": [{"normalise": {"min": -3, "max": 97}}]},
        {"name": "y", "type": "int64", "columns": ["b"], "missing": 7, "steps": [{"bucket": [0, 1.5, 10]}]},
        {"name": "z", "type": "int64", "columns": ["b"], "steps": [{"hash": "fnv1a"}]}]})",
    R"({"delimiter": "|", "columns": ["a", "b", "c"], "slots": [
        {"name": "f", "type": "float32", "columns": ["a", "c"]},
        {"name": "i", "type": "int64", "columns": ["b"], "steps": [{"modulo": 97}]}]})",
    R"({"delimiter": "\t", "header": true, "columns": ["a"], "slots": [
        {"name": "a", "type": "int64", "columns": ["a"]}]})"};

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "schema_text_fuzz: %s\n", what);
  std::abort();
}

/// Bits, so that a nan equals itself.
bool same(const Batch& a, const Batch& b) {
  if (a.rows != b.rows || a.slots.size() != b.slots.size()) return false;
  for (std::size_t i = 0; i < a.slots.size(); ++i) {
    const SlotValues &x = a.slots[i], &y = b.slots[i];
    if (x.ints != y.ints || x.offsets != y.offsets || x.floats.size() != y.floats.size()) return false;
    if (!x.floats.empty() &&
        std::memcmp(x.floats.data(), y.floats.data(), x.floats.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

/// Hands over the next piece; after the last one, the end. False then.
template <class Reader>
bool feed(Reader& reader, std::string_view& text, std::size_t piece) {
  if (text.empty()) {
    reader.end_input();
    return false;
  }
  const auto room = reader.room();
  const std::size_t bytes = std::min({text.size(), piece, room.size()});
  std::memcpy(room.data(), text.data(), bytes);
  reader.commit(bytes);
  text.remove_prefix(bytes);
  return true;
}

/// The text that is printed before the first bad line, and that line's place.
std::string printed(const Schema& schema, std::string_view text, std::size_t piece, std::string& out) {
  SchemaPrinter printer(schema);
  printer.begin_input();
  for (bool is_more = true; is_more;) {
    is_more = feed(printer, text, piece);
    const bool good = printer.print();
    out += printer.text();
    if (!good) return to_string(printer.fault());
  }
  return "";
}

std::string parsed(const Schema& schema, const std::vector<Slot>& slots, std::string_view text,
                   std::size_t piece, Batch& batch) {
  SchemaParser parser(schema, slots);
  parser.begin_input();
  parser.begin_batch(batch, SIZE_MAX / 2);
  auto outcome = MultiSlotParser::Outcome::more;
  for (bool is_more = true; outcome == MultiSlotParser::Outcome::more && is_more;) {
    is_more = feed(parser, text, piece);
    outcome = parser.parse();
  }
  parser.end_batch();
  return outcome == MultiSlotParser::Outcome::bad ? to_string(parser.fault()) : "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Schema schema = parse_schema(kSchemas[data[0] % std::size(kSchemas)], "schema.json");
  const std::vector<Slot> slots = slots_of(schema);
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t piece = 1 + data[1] % 64;

  std::string whole_text, text_in_pieces;
  const std::string fault = printed(schema, text, text.size() + 1, whole_text);
  if (printed(schema, text, piece, text_in_pieces) != fault) broken("the fault of a line depends on the cut");
  if (whole_text != text_in_pieces) broken("the text depends on the cut");

  Batch whole, pieces, again;
  if (parsed(schema, slots, text, text.size() + 1, whole) != fault)
    broken("text and batches have different faults");
  if (parsed(schema, slots, text, piece, pieces) != fault) broken("the fault depends on the cut");
  if (!same(whole, pieces)) broken("the values depend on the cut");
  if (parse_multi_slot(slots, whole_text, again)) broken("what was printed does not read");
  if (!same(whole, again)) broken("batches have other values than the text");
  return 0;
}
