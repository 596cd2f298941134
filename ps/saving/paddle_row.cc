#include "ps/saving/paddle_row.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

using Kind = UpdateRule::Kind;

// Before the state of column 0: slot, unseen days, delta score, show, click, the value.
constexpr std::size_t kFirstNumbers = 6;

bool has_powers(Kind kind) noexcept {
  return kind == Kind::adam || kind == Kind::pow_adam || kind == Kind::shared_adam;
}

// Floats of `first`, and of `second` where there is one; rules that Paddle does not have start anew.
std::size_t floats_of(Kind kind, std::size_t width) noexcept {
  if (kind == Kind::shared_adagrad || kind == Kind::shared_adam) return 1;
  return kind == Kind::std_adagrad || kind == Kind::adam || kind == Kind::pow_adam ? width : 0;
}

std::size_t numbers_of(Kind kind, std::size_t width) noexcept {
  if (width == 0) return 0;
  return has_powers(kind) ? 2 * floats_of(kind, width) + 2 : floats_of(kind, width);
}

// How many updates leave a power, which starts at beta.
std::uint32_t steps_of(float power, float beta) noexcept {
  if (!(power > 0.0f)) return 1000000;
  const double steps = std::log(static_cast<double>(power)) / std::log(static_cast<double>(beta)) - 1.0;
  return static_cast<std::uint32_t>(std::clamp(std::round(steps), 0.0, 1e9));
}

template <class T>
void append_number(T value, std::string& out) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), end);
}

template <class T>
bool take_number(std::string_view& line, T& out) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out);
  if (error != std::errc() || (end != line.data() + line.size() && *end != ' ')) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return true;
}

void append_all(const std::vector<float>& from, std::vector<float>& to) {
  for (const float number : from) to.push_back(number);
}

}  // namespace

PaddleRows::PaddleRows(const TableConfig& config)
    : config_(config), layout_(config), initializer_(config.initializer, config.name) {}

const UpdateRule& PaddleRows::rule_of_column0() const noexcept {
  return config_.accessor.embed_rule ? *config_.accessor.embed_rule : config_.rule;
}

PaddleRows::State PaddleRows::parse_state(const UpdateRule& rule, std::size_t width,
                                          const float* numbers) const {
  State out;
  const std::size_t floats = floats_of(rule.kind, width);
  out.first.assign(numbers, numbers + floats);
  if (!has_powers(rule.kind)) return out;
  out.second.assign(numbers + floats, numbers + 2 * floats);
  out.power1 = numbers[2 * floats];
  out.power2 = numbers[2 * floats + 1];
  return out;
}

void PaddleRows::store_state(const UpdateRule& rule, const RowLayout::Part& part, const State& state,
                             float* row) const {
  float* to = row + part.state;
  Updater(rule).reset({to, part.state_floats});
  to = std::copy(state.first.begin(), state.first.end(), to);
  to = std::copy(state.second.begin(), state.second.end(), to);
  if (rule.kind == Kind::pow_adam || rule.kind == Kind::shared_adam) {
    to[0] = state.power1;
    to[1] = state.power2;
  }
  if (part.steps == RowLayout::kNone) return;
  const std::uint32_t steps = rule.kind == Kind::adam ? std::min(steps_of(state.power1, rule.beta1),
                                                                 steps_of(state.power2, rule.beta2))
                                                      : 0;
  std::memcpy(row + part.steps, &steps, sizeof steps);
}

PaddleRows::State PaddleRows::load_state(const UpdateRule& rule, const RowLayout::Part& part,
                                         const float* row) const {
  State out;
  const std::size_t floats = floats_of(rule.kind, part.width);
  const float* from = row + part.state;
  out.first.assign(from, from + floats);
  if (!has_powers(rule.kind)) return out;
  out.second.assign(from + floats, from + 2 * floats);
  if (rule.kind != Kind::adam) {
    out.power1 = from[2 * floats];
    out.power2 = from[2 * floats + 1];
    return out;
  }
  std::uint32_t steps;
  std::memcpy(&steps, row + part.steps, sizeof steps);
  out.power1 = static_cast<float>(std::pow(static_cast<double>(rule.beta1), steps + 1.0));
  out.power2 = static_cast<float>(std::pow(static_cast<double>(rule.beta2), steps + 1.0));
  return out;
}

void PaddleRows::parse(std::string_view line, Row& row) const {
  std::vector<float> numbers;
  std::string_view left = line;
  bool good = take_number(left, row.key);
  while (good && left.find_first_not_of(" \r") != std::string_view::npos) {
    good = take_number(left, numbers.emplace_back());
  }
  if (!good) throw Error(ErrorKind::data, "'" + std::string(line.substr(0, 60)) + "' is not a row");
  const std::size_t more = config_.width - 1;
  const std::size_t shorter = kFirstNumbers + numbers_of(rule_of_column0().kind, 1);
  const std::size_t longer = shorter + more + numbers_of(config_.rule.kind, more);
  if (numbers.size() != shorter && numbers.size() != longer) {
    throw Error(ErrorKind::config,
                "a row has " + std::to_string(numbers.size()) + " numbers after its key; table '" +
                    config_.name + "' of this program, with " + std::to_string(config_.width) +
                    " columns and the rule " + std::string(to_string(config_.rule.kind)) + ", has " +
                    std::to_string(shorter) + " or " + std::to_string(longer),
                "load it with the program's embedding size and optimizer as they were");
  }
  const bool extended = numbers.size() == longer;
  row.floats.assign(layout_.floats, 0.0f);
  float* values = row.floats.data() + layout_.statistics;
  values[0] = numbers[5];
  if (extended) std::copy_n(numbers.data() + shorter, more, values + 1);
  const State state = parse_state(rule_of_column0(), 1, numbers.data() + kFirstNumbers);
  State rest;
  if (extended) rest = parse_state(config_.rule, more, numbers.data() + shorter + more);
  if (layout_.statistics == 0) return store_plain(state, rest, extended, row);
  Statistics statistics;
  statistics.slot = static_cast<std::uint16_t>(std::clamp(numbers[0], 0.0f, 65535.0f));
  statistics.set_unseen_days(static_cast<std::uint16_t>(std::clamp(numbers[1], 0.0f, 32767.0f)));
  statistics.set_extended(extended);
  statistics.delta_score = numbers[2];
  statistics.show = numbers[3];
  statistics.click = numbers[4];
  write_statistics(statistics, row.floats.data());
  store_state(rule_of_column0(), layout_.parts[0], state, row.floats.data());
  if (layout_.part_count == 2)
    store_state(config_.rule, layout_.parts[1], extended ? rest : new_state(more), row.floats.data());
}

// Of columns that have not been updated yet.
PaddleRows::State PaddleRows::new_state(std::size_t width) const {
  State out;
  out.first.resize(floats_of(config_.rule.kind, width));
  if (has_powers(config_.rule.kind)) out.second.resize(out.first.size());
  out.power1 = config_.rule.beta1;
  out.power2 = config_.rule.beta2;
  return out;
}

// A row without statistics has one state for all of its columns; where that is one number for the row, it is
// that of the columns from 1 on.
void PaddleRows::store_plain(const State& state, const State& rest, bool extended, Row& row) const {
  const std::size_t more = config_.width - 1;
  if (!extended && more != 0) initializer_.fill(row.key, {row.floats.data(), config_.width}, 1);
  State whole = extended && more != 0 && floats_of(config_.rule.kind, config_.width) == 1 ? rest : state;
  if (whole.first.size() < floats_of(config_.rule.kind, config_.width)) {
    append_all(rest.first, whole.first);
    append_all(rest.second, whole.second);
  }
  whole.first.resize(floats_of(config_.rule.kind, config_.width));
  if (has_powers(config_.rule.kind)) whole.second.resize(whole.first.size());
  store_state(config_.rule, layout_.parts[0], whole, row.floats.data());
}

// And in Paddle's text it has two.
void PaddleRows::split_plain(State& state, State& rest) {
  rest = state;
  for (auto [one, others] : {std::pair(&state.first, &rest.first), std::pair(&state.second, &rest.second)}) {
    if (one->size() <= 1) continue;
    one->erase(one->begin() + 1, one->end());
    others->erase(others->begin());
  }
}

void PaddleRows::append_line(std::uint64_t key, const float* row, std::string& out) const {
  Statistics statistics;
  statistics.slot = 0;
  statistics.show = 1.0f;
  if (layout_.statistics != 0) statistics = read_statistics(row);
  State state = load_state(rule_of_column0(), layout_.parts[0], row);
  State rest;
  if (layout_.statistics == 0) {
    split_plain(state, rest);
  } else if (layout_.part_count == 2) {
    rest = load_state(config_.rule, layout_.parts[1], row);
  }
  std::vector<float> numbers(4);
  numbers[0] = statistics.delta_score;
  numbers[1] = statistics.show;
  numbers[2] = statistics.click;
  const float* values = row + layout_.statistics;
  numbers[3] = values[0];
  append_state(rule_of_column0(), state, numbers);
  if (config_.width > 1 && (layout_.statistics == 0 || statistics.is_extended())) {
    for (std::size_t i = 1; i < config_.width; ++i) numbers.push_back(values[i]);
    append_state(config_.rule, rest, numbers);
  }
  append_number(key, out);
  for (const unsigned number : {unsigned{statistics.slot}, unsigned{statistics.unseen_days()}}) {
    out += ' ';
    append_number(number, out);
  }
  for (const float number : numbers) {
    out += ' ';
    append_number(number, out);
  }
  out += '\n';
}

void PaddleRows::append_state(const UpdateRule& rule, const State& state, std::vector<float>& out) {
  append_all(state.first, out);
  append_all(state.second, out);
  if (!has_powers(rule.kind)) return;
  out.push_back(state.power1);
  out.push_back(state.power2);
}

}  // namespace fleetrun::ps
