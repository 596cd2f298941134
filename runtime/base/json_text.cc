#include "runtime/base/json_text.h"

#include <cstddef>
#include <nlohmann/json.hpp>

#include "runtime/base/json_depth.h"

namespace fleetrun {

template <class Json>
Json read_json(std::string_view text) {
  return nests_too_deep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

template <class Json>
Json parse_json(std::string_view text) {
  if (nests_too_deep(text)) {
    const std::string why = "there are more than " + std::to_string(kDeepestJson) + " levels";
    throw Json::parse_error::create(101, std::size_t{0}, why, nullptr);
  }
  return Json::parse(text);
}

template <class Json>
std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

template nlohmann::json read_json(std::string_view);
template nlohmann::json parse_json(std::string_view);
template std::string json_text(const nlohmann::json&, int);
template nlohmann::ordered_json read_json(std::string_view);
template nlohmann::ordered_json parse_json(std::string_view);
template std::string json_text(const nlohmann::ordered_json&, int);

}  // namespace fleetrun
