#include "dataset/schema/value_steps.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "dataset/text/number_print.h"
#include "dataset/text/number_text.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

enum class Form { text, number, whole };

/// A value on its way.
struct State {
  Form form = Form::text;
  std::string_view text;
  double number = 0;
  std::uint64_t magnitude = 0;
  bool negative = false;
};

constexpr std::size_t kShown = 40;  // bytes of what an error quotes

/// Digits of which 15 at most count, with or without a point:
/// exact, since both numbers are, and a quotient rounds once.
bool read_short_double(std::string_view text, double& value) noexcept {
  constexpr double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 16) return false;
  std::uint64_t mantissa = 0;
  std::size_t digits = 0;
  std::size_t point = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = static_cast<unsigned char>(text[i] - '0');
    if (digit <= 9) {
      mantissa = mantissa * 10 + digit;
      ++digits;
    } else if (text[i] == '.' && point == text.size()) {
      point = i;
    } else {
      return false;
    }
  }
  if (digits == 0 || digits > 15) return false;
  const std::size_t fraction = point == text.size() ? 0 : text.size() - point - 1;
  value = static_cast<double>(mantissa) / power[fraction];
  if (negative) value = -value;
  return true;
}

bool read_number(std::string_view text, double& value, std::string& fault) {
  if (read_short_double(text, value)) return true;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole_text = !digits.empty() && end == digits.data() + digits.size();
  if (whole_text && error == std::errc{} && std::isfinite(value) &&
      !(text.front() == '+' && digits.front() == '-'))
    return true;
  if (text.empty())
    fault = "is empty, and a number is wanted: give the slot a \"missing\" value";
  else if (whole_text && error == std::errc::result_out_of_range)
    fault = in_quotes(text, kShown) + " does not fit a double";
  else
    fault = in_quotes(text, kShown) + " is not a number";
  return false;
}

bool read_whole(State& state, std::string& fault) {
  std::string_view digits = state.text;
  state.negative = digits.starts_with('-');
  if (state.negative || digits.starts_with('+')) digits.remove_prefix(1);
  state.form = Form::whole;
  switch (read_count(digits, state.magnitude)) {
    case NumberFault::none:
      if (!state.negative || state.magnitude <= std::uint64_t{1} << 63) {
        state.negative = state.negative && state.magnitude != 0;
        return true;
      }
      [[fallthrough]];
    case NumberFault::out_of_range:
      fault = in_quotes(state.text, kShown) + " does not fit 64 bits";
      return false;
    case NumberFault::not_a_number:
      break;
  }
  fault = state.text.empty() ? "is empty, and a whole number is wanted: give the slot a \"missing\" value"
                             : in_quotes(state.text, kShown) + " is not a whole number";
  return false;
}

void set_whole(State& state, double number) noexcept {
  state.form = Form::whole;
  state.negative = number <= -1;
  state.magnitude = static_cast<std::uint64_t>(std::abs(number));
}

bool make_number(State& state, std::string& fault) {
  if (state.form == Form::text && !read_number(state.text, state.number, fault)) return false;
  if (state.form == Form::whole) {
    state.number = static_cast<double>(state.magnitude);
    if (state.negative) state.number = -state.number;
  }
  state.form = Form::number;
  return true;
}

std::uint64_t hashed(const Step& step, std::string_view text) noexcept {
  const std::uint64_t hash =
      step.hash == HashKind::crc32 ? crc32(text, crc32(step.prefix)) : fnv1a(text, fnv1a(step.prefix));
  return step.modulo == 0 ? hash : hash % step.modulo;
}

void take_hash(State& state, const Step& step) {
  char digits[kNumberBytes + 1];
  std::string_view text = state.text;
  if (state.form == Form::whole) {
    char* out = digits;
    if (state.negative) *out++ = '-';
    text = {digits, print_unsigned(out, state.magnitude)};
  }
  state = {.form = Form::whole, .text = state.text, .magnitude = hashed(step, text)};
}

/// As Python's %: never negative.
bool take_modulo(State& state, const Step& step, std::string& fault) {
  if (state.form == Form::text && !read_whole(state, fault)) return false;
  const std::uint64_t rest = state.magnitude % step.modulo;
  state.magnitude = state.negative && rest != 0 ? step.modulo - rest : rest;
  state.negative = false;
  return true;
}

bool take_square_log(State& state, std::string& fault) {
  double number = state.number;
  if (number > 2) {
    const double log = std::log(number);
    number = std::floor(log * log);
  }
  if (std::abs(number) >= 9007199254740992.0) {
    fault = in_quotes(state.text, kShown) + " is too far from 0 for square_log";
    return false;
  }
  set_whole(state, number);
  return true;
}

bool take_step(State& state, const Step& step, std::string& fault) {
  if (step.kind == StepKind::hash) {
    take_hash(state, step);
    return true;
  }
  if (step.kind == StepKind::modulo) return take_modulo(state, step, fault);
  if (!make_number(state, fault)) return false;
  if (step.kind == StepKind::normalise) {
    state.number = (state.number - step.offset) / step.divisor;
  } else if (step.kind == StepKind::bucket) {
    const auto above = std::upper_bound(step.boundaries.begin(), step.boundaries.end(), state.number);
    set_whole(state, static_cast<double>(above - step.boundaries.begin()));
  } else if (step.kind == StepKind::square_log) {
    return take_square_log(state, fault);
  } else {
    if (!(state.number > -1)) {
      fault = in_quotes(state.text, kShown) + " is not above -1, as log(1 + x) needs";
      return false;
    }
    state.number = std::log(1 + state.number);
  }
  return true;
}

}  // namespace

std::optional<ShortHash> short_hash(const ValueRule& rule, SlotType type) {
  constexpr std::uint64_t max = 100000000;
  if (type != SlotType::int64 || rule.missing || rule.steps.size() != 1) return std::nullopt;
  const Step& step = rule.steps.front();
  if (step.kind != StepKind::hash || step.hash != HashKind::crc32 || step.modulo == 0 || step.modulo > max)
    return std::nullopt;
  return ShortHash{.prefix = crc32(step.prefix),
                   .remainder = Remainder32(static_cast<std::uint32_t>(step.modulo))};
}

std::size_t long_rules(const Schema& schema) {
  std::size_t count = 0;
  for (const SlotRule& slot : schema.slots)
    for (const ValueRule& rule : slot.values) count += short_hash(rule, slot.type) ? 0 : 1;
  return count;
}

bool ValueSteps::evaluate(std::string_view field, Value& value, std::string& fault) const {
  if (field.empty() && rule_.missing) {
    const double number = *rule_.missing;
    value = {.number = number, .magnitude = 0, .negative = number < 0};
    if (type_ == SlotType::int64) value.magnitude = static_cast<std::uint64_t>(std::abs(number));
    return true;
  }
  State state{.text = field};
  for (const Step& step : rule_.steps)
    if (!take_step(state, step, fault)) return false;
  if (type_ == SlotType::int64) {
    if (state.form == Form::text && !read_whole(state, fault)) return false;
    value = {.number = 0, .magnitude = state.magnitude, .negative = state.negative};
    return true;
  }
  if (!make_number(state, fault)) return false;
  if (!(std::abs(state.number) <= static_cast<double>(std::numeric_limits<float>::max()))) {
    fault = in_quotes(field, kShown) + " becomes too large for float32";
    return false;
  }
  value.number = state.number;
  return true;
}

float rounded(double value) {
  // Written and read it may fall to the other side of the middle between two floats;
  // only there, and where floats have fewer digits.
  constexpr std::uint64_t beyond_float = 0x1FFFFFFF;
  const bool middle = (std::bit_cast<std::uint64_t>(value) & beyond_float) == 0x10000000;
  const bool tiny = std::abs(value) < static_cast<double>(std::numeric_limits<float>::min()) && value != 0;
  if (!middle && !tiny) return static_cast<float>(value);
  char text[kNumberBytes];
  float back = 0;
  read_float({text, print_double(text, value)}, back);
  return back;
}

}  // namespace fleetrun::dataset
