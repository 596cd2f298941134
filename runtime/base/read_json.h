// JSON of others: files, answers, messages. scripts/lint refuses other ways to parse it. `Json` is one of
// nlohmann's, whose header the caller includes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/json_depth.h"

namespace fleetrun {

/// Discarded (is_discarded()) where `text` is not JSON, or nested too deep.
template <class Json>
Json read_json(std::string_view text) {
  return nests_too_deep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

/// Throws: Json::parse_error instead.
template <class Json>
Json parse_json(std::string_view text) {
  if (nests_too_deep(text)) {
    const std::string why = "there are more than " + std::to_string(kDeepestJson) + " levels";
    throw Json::parse_error::create(101, std::size_t{0}, why, nullptr);
  }
  return Json::parse(text);
}

}  // namespace fleetrun
