// What the values of a push may not be. Who sends a push, and who applies one, ask here first: a row that has
// become infinite or NaN, or whose sum of squares has, learns nothing any more and says nothing of it.
#pragma once

#include <span>
#include <string_view>

#include "ps/base/table_config.h"

namespace fleetrun::ps {

/// What the gradients of rules that keep squares may reach, and those of other rules:
/// so many of them can be added up that nobody reaches the end of a float.
inline constexpr float kLargestSquared = 1e15f;
inline constexpr float kLargestGradient = 1e30f;

/// True when none is NaN or infinite.
bool are_finite(std::span<const float> values) noexcept;

/// Throws: Error(data) for a gradient that is NaN, infinite or too large for the table's rule.
/// `done` is what was done with the push: "sent", "applied".
void check_gradients(const TableConfig& config, std::span<const float> gradients, std::string_view done);

/// Throws: Error(data) for a value of rows that are assigned which no gradient may be either.
void check_assigned(const TableConfig& config, std::span<const float> values);

/// Throws: Error(data) for a show or click that is NaN, infinite or negative.
void check_counts(const TableConfig& config, std::span<const float> shows, std::span<const float> clicks,
                  std::string_view done);

}  // namespace fleetrun::ps
