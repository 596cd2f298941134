// Any bytes, as the JSON of a schema: no crash, no more memory than the text is worth, nothing but an Error
// for what is none; a schema that is read has slots for every rule.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target;
// schema_json_replay runs it over the corpus in every build.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "dataset/schema/schema.h"
#include "runtime/base/error.h"

using namespace fleetrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const dataset::Schema schema =
        dataset::parse_schema({reinterpret_cast<const char*>(data), size}, "schema.json");
    const auto slots = dataset::slots_of(schema);
    bool whole = !slots.empty() && slots.size() == schema.slots.size();
    for (const dataset::SlotRule& rule : schema.slots) {
      whole = whole && !rule.values.empty();
      for (const dataset::ValueRule& value : rule.values)
        whole = whole && value.column < schema.columns.size();
    }
    if (!whole) {
      std::fprintf(stderr, "schema_json_fuzz: a schema without a column that it needs\n");
      std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
