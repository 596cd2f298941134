#include "ps/table_config.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

// The shortest text that reads back as the same number, whatever the locale.
template <class T>
std::string number(T value) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

void check_table(const TableConfig& table) {
  const auto refuse = [&table](const std::string& what, const std::string& hint = {}) {
    throw Error(ErrorKind::config, "table '" + table.name + "': " + what, hint);
  };
  if (table.width == 0) refuse("its width is 0");
  if (table.kind == TableConfig::Kind::sparse && table.width > (1u << 24)) {
    refuse("rows of " + number(table.width) + " floats; at most 16777216 fit");
  }
  const UpdateRule& rule = table.rule;
  const auto fraction = [](float value) { return value >= 0.0f && value < 1.0f; };
  if (!std::isfinite(rule.learning_rate)) refuse("its learning rate is not a finite number");
  if (rule.kind == UpdateRule::Kind::adam && !(fraction(rule.beta1) && fraction(rule.beta2))) {
    refuse("beta1=" + number(rule.beta1) + ", beta2=" + number(rule.beta2), "both must be in [0, 1)");
  }
  if (!(rule.epsilon >= 0.0f)) refuse("epsilon=" + number(rule.epsilon), "it must not be negative");
  if (!(rule.initial_accumulator >= 0.0f)) {
    refuse("initial_accumulator=" + number(rule.initial_accumulator), "it must not be negative");
  }
  const Initializer& first = table.initializer;
  if (!std::isfinite(first.a) || !std::isfinite(first.b)) refuse("its initializer is not finite");
}

std::string describe(const UpdateRule& rule) {
  std::string out(to_string(rule.kind));
  if (rule.kind == UpdateRule::Kind::sum) return out;
  out += "(learning_rate=" + number(rule.learning_rate);
  if (rule.kind == UpdateRule::Kind::adagrad) {
    out += ", epsilon=" + number(rule.epsilon) + ", initial_accumulator=" + number(rule.initial_accumulator);
  }
  if (rule.kind == UpdateRule::Kind::adam) {
    out += ", beta1=" + number(rule.beta1) + ", beta2=" + number(rule.beta2) +
           ", epsilon=" + number(rule.epsilon);
  }
  return out += ')';
}

std::string describe(const Initializer& initializer) {
  std::string out(to_string(initializer.kind));
  out += '(';
  out += number(initializer.a);
  if (initializer.kind != Initializer::Kind::constant) {
    out += ", " + number(initializer.b) + ", seed=" + number(initializer.seed);
  }
  return out += ')';
}

}  // namespace

std::string_view to_string(UpdateRule::Kind kind) noexcept {
  constexpr std::array<std::string_view, 4> names = {"sgd", "adagrad", "adam", "sum"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Initializer::Kind kind) noexcept {
  constexpr std::array<std::string_view, 4> names = {"constant", "uniform", "normal", "truncated_normal"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(TableConfig::Kind kind) noexcept {
  return kind == TableConfig::Kind::dense ? "dense" : "sparse";
}

std::string_view to_string(Mode mode) noexcept {
  return mode == Mode::sync ? "sync" : "async";
}

std::string describe(const TableConfig& table) {
  std::string out(to_string(table.kind));
  out += " table " + number(table.id) + " '" + table.name + "' of width " + number(table.width) + ", " +
         describe(table.rule);
  if (table.kind == TableConfig::Kind::sparse) out += ", " + describe(table.initializer);
  return out;
}

void check_tables(const std::vector<TableConfig>& tables) {
  std::set<std::uint32_t> ids;
  std::set<std::string_view> names;
  for (const TableConfig& table : tables) {
    check_table(table);
    if (!ids.insert(table.id).second) {
      throw Error(ErrorKind::config, "two tables have the id " + number(table.id));
    }
    if (!names.insert(table.name).second) {
      throw Error(ErrorKind::config, "two tables have the name '" + table.name + "'");
    }
  }
}

}  // namespace fleetrun::ps
