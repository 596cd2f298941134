// Which programs that a fuzzer made up can be run: all that they declare is small.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/program.h"

namespace fleetrun::fuzz {

constexpr std::int64_t kUnknownSize = 3;
constexpr std::int64_t kMaxValues = 4096;

inline engine::Shape small(engine::Shape shape) {
  for (std::int64_t& size : shape) size = size < 0 ? kUnknownSize : size;
  return shape;
}

/// A repeat or a padding that nothing declared tells of.
inline bool has_large_number(const engine::Operator& op) {
  const auto is_large = [](std::int64_t value) { return value > kMaxValues; };
  return std::ranges::any_of(op.attributes, [&](const auto& attribute) {
    const auto* number = std::get_if<std::int64_t>(&attribute.second);
    const auto* numbers = std::get_if<std::vector<std::int64_t>>(&attribute.second);
    return (number != nullptr && is_large(*number)) ||
           (numbers != nullptr && std::ranges::any_of(*numbers, is_large));
  });
}

inline bool is_small(const engine::Program& program) {
  return std::ranges::all_of(program.variables(),
                             [](const auto& variable) {
                               return engine::count(small(variable.second.shape)) <= kMaxValues;
                             }) &&
         std::ranges::none_of(program.operators(), has_large_number);
}

}  // namespace fleetrun::fuzz
