#include "ps/table/push_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>

#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffff;

// Magnitudes of floats are ordered as their bits are; NaN and the infinities come last.
bool are_within(std::span<const float> values, float limit) noexcept {
  const auto most = std::bit_cast<std::uint32_t>(limit);
  std::uint32_t bad = 0;
  for (const float value : values) {
    bad |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & kMagnitude) > most);
  }
  return bad == 0;
}

bool keeps_squares(UpdateRule::Kind kind) noexcept {
  return kind != UpdateRule::Kind::sgd && kind != UpdateRule::Kind::sum &&
         kind != UpdateRule::Kind::momentum && kind != UpdateRule::Kind::summary;
}

std::string text_of(float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return "infinite";
  std::ostringstream out;
  out << value;
  return out.str();
}

// What the first value is that is too large for the table's rule, "" without any.
std::string beyond_limit(const TableConfig& config, std::span<const float> values) {
  const float limit = keeps_squares(config.rule.kind) ? kLargestSquared : kLargestGradient;
  if (are_within(values, limit)) return {};
  const float bad = *std::ranges::find_if_not(values, [limit](float v) { return std::fabs(v) <= limit; });
  return text_of(bad) + (std::isfinite(bad) ? ", and more than " + text_of(limit) : "");
}

std::string start_of(const TableConfig& config) {
  return "table '" + config.name + "': ";
}

std::string end_of(std::string_view done) {
  return "; nothing of this push was " + std::string(done);
}

}  // namespace

bool are_finite(std::span<const float> values) noexcept {
  return are_within(values, std::numeric_limits<float>::max());
}

void check_gradients(const TableConfig& config, std::span<const float> gradients, std::string_view done) {
  const std::string bad = beyond_limit(config, gradients);
  if (bad.empty()) return;
  throw Error(ErrorKind::data, start_of(config) + "a gradient is " + bad + end_of(done),
              "lower the learning rate, or look for a division by zero or a logarithm of zero in the loss; "
              "FLAGS_check_nan_inf=1 stops training at the operator that makes NaN or an infinity first");
}

void check_assigned(const TableConfig& config, std::span<const float> values) {
  const std::string bad = beyond_limit(config, values);
  if (bad.empty()) return;
  throw Error(ErrorKind::data, start_of(config) + "a value to assign is " + bad + "; nothing was assigned",
              "look at where the rows come from");
}

void check_counts(const TableConfig& config, std::span<const float> shows, std::span<const float> clicks,
                  std::string_view done) {
  for (const auto& [name, counts] : {std::pair("show", shows), std::pair("click", clicks)}) {
    const auto bad =
        std::ranges::find_if_not(counts, [](float count) { return count >= 0.0f && std::isfinite(count); });
    if (bad == counts.end()) continue;
    throw Error(ErrorKind::data, start_of(config) + "a " + name + " is " + text_of(*bad) + end_of(done),
                "shows and clicks are counts: look at the slots that they come from");
  }
}

}  // namespace fleetrun::ps
