// JSON as text: read from files, answers and messages of others, and written. scripts/lint refuses other
// ways. `Json` is nlohmann::json or nlohmann::ordered_json, whose header the caller includes; their parser
// and writer are compiled once, here, and not anew in each source that calls them.
#pragma once

#include <string>
#include <string_view>

namespace fleetrun {

/// Discarded (is_discarded()) where `text` is not JSON, or nested deeper than kDeepestJson.
template <class Json>
Json read_json(std::string_view text);

/// Throws: Json::parse_error instead.
template <class Json>
Json parse_json(std::string_view text);

/// On one line, or with each level `indent` spaces further in. Bytes that are not UTF-8 become U+FFFD.
template <class Json>
std::string json_text(const Json& json, int indent = -1);

}  // namespace fleetrun
