#include "runtime/tools/prediction_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/engine/operators.h"

namespace fleetrun::inference {
namespace {

using engine::DataType;
using engine::Tensor;

struct Place {
  std::size_t first;
  std::size_t end;
};

/// Where the values of a row are.
Place place_of(const Fetched& fetched, std::size_t row, std::size_t rows) {
  const Tensor& tensor = *fetched.tensor;
  const bool has_offsets = tensor.offsets.size() == rows + 1;
  const auto first = tensor.shape().empty() ? 0 : static_cast<std::size_t>(tensor.shape()[0]);
  if (has_offsets && first == tensor.offsets.back()) {
    const std::size_t width = first == 0 ? 0 : tensor.size() / first;
    return {tensor.offsets[row] * width, tensor.offsets[row + 1] * width};
  }
  if (tensor.shape().empty() || first != rows)
    throw Error(ErrorKind::config,
                "'" + fetched.name + "' has the shape " + engine::to_string(tensor.shape()) + " for " +
                    std::to_string(rows) + " rows, so there is no value of it for each",
                "choose others with --fetch");
  const std::size_t width = tensor.size() / rows;
  return {row * width, (row + 1) * width};
}

/// Calls use(value) with the value at `at` as the type that the tensor has.
template <class Use>
void with_value(const Tensor& tensor, std::size_t at, Use use) {
  switch (tensor.type()) {
    case DataType::float32:
      return use(tensor.values<float>()[at]);
    case DataType::float64:
      return use(tensor.values<double>()[at]);
    case DataType::int32:
      return use(tensor.values<std::int32_t>()[at]);
    case DataType::int64:
      return use(tensor.values<std::int64_t>()[at]);
    case DataType::boolean:
      return use(static_cast<const std::uint8_t*>(tensor.data())[at] != 0);
  }
}

template <class T>
std::string text_of(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else {
    std::array<char, 64> room;
    return {room.data(), std::to_chars(room.data(), room.data() + room.size(), value).ptr};
  }
}

template <class T>
nlohmann::ordered_json json_of(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return text_of(value);
    // A float's own digits, not those of the double that it becomes; with a point, so that it stays one.
    std::string text = text_of(value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return parse_json<nlohmann::ordered_json>(text);
  } else {
    return value;
  }
}

}  // namespace

std::string prediction_text(std::span<const Fetched> fetched, std::size_t rows) {
  std::string text;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < fetched.size(); ++i) {
      if (i > 0) text += '\t';
      const Place place = place_of(fetched[i], row, rows);
      for (std::size_t at = place.first; at < place.end; ++at) {
        if (at > place.first) text += ' ';
        with_value(*fetched[i].tensor, at, [&text](auto value) { text += text_of(value); });
      }
    }
    text += '\n';
  }
  return text;
}

std::string prediction_json(std::span<const Fetched> fetched, std::size_t rows) {
  std::string text;
  for (std::size_t row = 0; row < rows; ++row) {
    nlohmann::ordered_json object;
    for (const Fetched& one : fetched) {
      const Place place = place_of(one, row, rows);
      auto values = nlohmann::ordered_json::array();
      for (std::size_t at = place.first; at < place.end; ++at)
        with_value(*one.tensor, at, [&values](auto value) { values.push_back(json_of(value)); });
      const bool is_single = one.tensor->offsets.empty() && values.size() == 1;
      object[one.name] = is_single ? values[0] : values;
    }
    text += json_text(object) + "\n";
  }
  return text;
}

}  // namespace fleetrun::inference
