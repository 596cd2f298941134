#include "ps/base/memory_amount.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {

std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
  constexpr std::string_view kUnits = "KMGT";
  double factor = 1.0;
  if (!text.empty()) {
    if (const std::size_t unit = kUnits.find(text.back()); unit != std::string_view::npos) {
      factor = std::ldexp(1.0, static_cast<int>(10 * (unit + 1)));
      text.remove_suffix(1);
    }
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::optional<std::int64_t> whole = parse_integer(text.substr(0, point));
  if (!whole || text.starts_with('-')) return std::nullopt;
  double number = static_cast<double>(*whole);
  if (point < text.size()) {
    const std::string_view digits = text.substr(point + 1);
    const std::optional<std::int64_t> part = parse_integer(digits);
    if (!part || digits.starts_with('-')) return std::nullopt;
    number += static_cast<double>(*part) / std::pow(10.0, static_cast<double>(digits.size()));
  }
  const double bytes = number * factor;
  if ((bytes < 1.0 && bytes != 0.0) || bytes >= std::ldexp(1.0, 63)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

std::optional<std::uint64_t> memory_amount(const Environ& environ, const char* variable) {
  const std::string* text = environ.find(variable);
  if (text == nullptr || text->empty()) return std::nullopt;
  if (const std::optional<std::uint64_t> bytes = parse_bytes(*text)) return bytes;
  throw Error(ErrorKind::config,
              std::string(variable) + "=" + printable(*text) + " is not an amount of memory",
              std::string("write bytes, or a number with K, M, G or T: ") + variable + "=16G");
}

}  // namespace fleetrun::ps
