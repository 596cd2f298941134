// What all operators share: the table of definitions, attributes, shape inference and its messages.

#include "runtime/engine/operators.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "runtime/base/error.h"

namespace fleetrun::engine {

namespace {

std::map<std::string_view, const OperatorDefinition*>& table() {
  static std::map<std::string_view, const OperatorDefinition*> definitions;
  return definitions;
}

constexpr std::array kTypeNames{
    std::pair{DataType::float32, std::string_view("float32")},
    std::pair{DataType::float64, std::string_view("float64")},
    std::pair{DataType::int32, std::string_view("int32")},
    std::pair{DataType::int64, std::string_view("int64")},
    std::pair{DataType::boolean, std::string_view("bool")},
};

template <class T>
bool convert(const Attribute& attribute, T& value) {
  if (const T* same = std::get_if<T>(&attribute)) {
    value = *same;
    return true;
  }
  if constexpr (std::is_arithmetic_v<T>) {
    if (const bool* number = std::get_if<bool>(&attribute)) return value = static_cast<T>(*number), true;
    if (const auto* number = std::get_if<std::int64_t>(&attribute)) {
      return value = static_cast<T>(*number), true;
    }
    if (std::is_same_v<T, double>) return false;
    if (const auto* number = std::get_if<double>(&attribute)) {
      value = static_cast<T>(*number);
      return static_cast<double>(value) == *number;
    }
  }
  if constexpr (std::is_same_v<T, std::vector<double>>) {
    if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&attribute)) {
      value.assign(numbers->begin(), numbers->end());
      return true;
    }
  }
  if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    if (const auto* number = std::get_if<std::int64_t>(&attribute)) return value = {*number}, true;
    // An empty Python list has no element type.
    if (const auto* numbers = std::get_if<std::vector<double>>(&attribute); numbers && numbers->empty()) {
      return value.clear(), true;
    }
  }
  return false;
}

}  // namespace

std::string_view to_string(DataType type) noexcept {
  for (const auto& [value, name] : kTypeNames) {
    if (value == type) return name;
  }
  return "unknown";
}

DataType parse_data_type(std::string_view name) {
  for (const auto& [value, spelled] : kTypeNames) {
    if (spelled == name) return value;
  }
  throw Error(ErrorKind::config, "no tensor type is called '" + std::string(name) + "'",
              "use float32, float64, int32, int64 or bool");
}

bool has_gradients(DataType type) noexcept {
  return type == DataType::float32 || type == DataType::float64;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dimension);
  }
  return text + "]";
}

std::int64_t count(std::span<const std::int64_t> shape) noexcept {
  std::int64_t product = 1;
  bool is_empty = false, overflows = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) return -1;
    is_empty = is_empty || dimension == 0;
    overflows = overflows || __builtin_mul_overflow(product, dimension, &product);
  }
  return is_empty ? 0 : overflows ? std::numeric_limits<std::int64_t>::max() : product;
}

template <class T>
T attribute(const Operator& op, const std::string& name, T fallback) {
  const auto found = op.attributes.find(name);
  if (found == op.attributes.end()) return fallback;
  T value{};
  if (!convert(found->second, value)) fail(op, "attribute '" + name + "' has the wrong type");
  return value;
}

template <class T>
T attribute(const Operator& op, const std::string& name) {
  if (!op.attributes.contains(name)) fail(op, "attribute '" + name + "' is missing");
  return attribute<T>(op, name, T{});
}

template bool attribute(const Operator&, const std::string&, bool);
template std::int64_t attribute(const Operator&, const std::string&, std::int64_t);
template double attribute(const Operator&, const std::string&, double);
template std::string attribute(const Operator&, const std::string&, std::string);
template std::vector<std::int64_t> attribute(const Operator&, const std::string&, std::vector<std::int64_t>);
template std::vector<double> attribute(const Operator&, const std::string&, std::vector<double>);
template std::vector<std::string> attribute(const Operator&, const std::string&, std::vector<std::string>);
template bool attribute(const Operator&, const std::string&);
template std::int64_t attribute(const Operator&, const std::string&);
template double attribute(const Operator&, const std::string&);
template std::string attribute(const Operator&, const std::string&);
template std::vector<std::int64_t> attribute(const Operator&, const std::string&);
template std::vector<double> attribute(const Operator&, const std::string&);
template std::vector<std::string> attribute(const Operator&, const std::string&);

bool has_role(const Operator& op, std::string_view role) {
  return attribute(op, std::string(kRoleAttribute), std::string()) == role;
}

bool is_update(const Operator& op) {
  return has_role(op, "update");
}

bool has_backward(const Program& program) {
  return std::ranges::any_of(program.operators(),
                             [](const Operator& op) { return has_role(op, "backward"); });
}

namespace {

std::string range_text(std::size_t min, std::size_t max) {
  if (min == max) return std::to_string(min);
  const bool is_open = max == static_cast<std::size_t>(-1);
  return std::to_string(min) + (is_open ? " or more" : " to " + std::to_string(max));
}

[[noreturn]] void fail_at(const Operator& op, ErrorKind kind, const std::string& what,
                          const std::string& hint) {
  Error error(kind, what, hint);
  if (!op.where.empty()) error.while_doing(op.where);
  throw error;
}

}  // namespace

void fail_on_data(const Operator& op, const std::string& what, const std::string& hint) {
  fail_at(op, ErrorKind::data, what, hint);
}

void fail(const Operator& op, const std::string& what, const std::string& hint) {
  std::string text = op.type + "(";
  for (const std::string& input : op.inputs) {
    if (text.back() != '(') text += ", ";
    text += input;
  }
  fail_at(op, ErrorKind::config, text + "): " + what, hint);
}

Inference::Inference(Program& program, const Operator& op) : program_(program), op_(op) {}

const Variable& Inference::input(std::size_t index) const {
  if (index >= op_.inputs.size()) fail("input " + std::to_string(index) + " is missing");
  return program_.variable(op_.inputs[index]);
}

void Inference::expect_inputs(std::size_t min, std::size_t max) const {
  const std::size_t inputs = op_.inputs.size();
  if (inputs >= min && inputs <= max) return;
  fail("takes " + range_text(min, max) + " inputs, has " + std::to_string(inputs));
}

void Inference::expect_outputs(std::size_t min, std::size_t max) const {
  const std::size_t outputs = op_.outputs.size();
  if (outputs >= min && outputs <= max) return;
  fail("makes " + range_text(min, max) + " outputs, " + std::to_string(outputs) + " are named");
}

void Inference::expect_type(std::size_t index, DataType type) const {
  if (input(index).type == type) return;
  fail("input '" + op_.inputs[index] + "' is " + std::string(to_string(input(index).type)) + ", not " +
           std::string(to_string(type)),
       "cast it to " + std::string(to_string(type)));
}

void Inference::set_output(std::size_t index, DataType type, const Shape& shape, int lod_level) {
  if (index >= op_.outputs.size()) fail("output " + std::to_string(index) + " is missing");
  const std::string& name = op_.outputs[index];
  if (name.empty()) return;
  if (!program_.has_variable(name)) {
    Variable made;
    made.name = name;
    made.type = type;
    made.shape = shape;
    made.lod_level = lod_level;
    program_.add_variable(std::move(made));
    return;
  }
  Variable& there = program_.variable(name);
  if (!there.persistable && !there.is_data) {
    there.type = type;
    there.shape = shape;
    there.lod_level = lod_level;
    return;
  }
  const std::int64_t wanted = count(there.shape), made = count(shape);
  const bool is_read = std::ranges::find(op_.inputs, name) != op_.inputs.end();
  if (is_read && (wanted < 0 || made < 0))
    fail("'" + name + "' is both read and written, and its size is not known");
  if (there.type != type || (wanted >= 0 && made >= 0 && wanted != made)) {
    fail("makes " + std::string(to_string(type)) + " " + to_string(shape) + ", but '" + name + "' is " +
         std::string(to_string(there.type)) + " " + to_string(there.shape));
  }
}

void Inference::declare(Variable variable) {
  if (!program_.has_variable(variable.name)) program_.add_variable(std::move(variable));
}

void Inference::fail(const std::string& what, const std::string& hint) const {
  std::string text = op_.type + ": " + what;
  const char* separator = ": ";
  for (const std::string& name : op_.inputs) {
    if (name.empty() || !program_.has_variable(name)) continue;
    const Variable& variable = program_.variable(name);
    text += separator + name + " " + std::string(to_string(variable.type)) + " " + to_string(variable.shape);
    separator = ", ";
  }
  fail_at(op_, ErrorKind::config, text, hint);
}

void add_operators(std::span<const OperatorDefinition> group) {
  for (const OperatorDefinition& definition : group) table().emplace(definition.type, &definition);
}

const OperatorDefinition* find_operator(std::string_view type) noexcept {
  const auto found = table().find(type);
  return found == table().end() ? nullptr : found->second;
}

std::vector<std::string_view> operator_types() {
  std::vector<std::string_view> types;
  for (const auto& [type, definition] : table()) types.push_back(type);
  return types;
}

void check_from_outside(const Program& program, const Operator& op) {
  const OperatorDefinition* definition = find_operator(op.type);
  if (definition != nullptr && definition->infer == infer_gradient) fail(op, "minimize() alone appends it");
  if (op.attributes.contains(std::string(kNamesAttribute))) fail(op, "passes alone give it other names");
  for (const std::string& name : op.outputs) {
    if (name.empty()) fail(op, "an output has no name");
    if (std::ranges::count(op.outputs, name) > 1) fail(op, "'" + name + "' is two of its outputs");
    const bool is_read = std::ranges::find(op.inputs, name) != op.inputs.end();
    if (is_read && !program.variable(name).persistable) fail(op, "'" + name + "' is both read and written");
  }
}

void check_values_are_made(const Program& program) {
  std::set<std::string> made;
  for (const Operator& op : program.operators()) {
    for (const std::string& name : op.inputs) {
      if (name.empty() || made.contains(name)) continue;
      const Variable& variable = program.variable(name);
      if (variable.persistable || variable.is_data) continue;
      fail_at(op, ErrorKind::config,
              "'" + name + "', which " + op.type +
                  " reads, has no value: no operator "
                  "before makes it",
              "feed it as data, or put the operator that makes it before");
    }
    made.insert(op.outputs.begin(), op.outputs.end());
  }
}

void infer_gradient(Inference& inference) {
  for (const std::string& name : inference.op().outputs) {
    if (!name.empty() && !inference.program().has_variable(name)) {
      inference.fail("gradient operators are added by append_backward");
    }
  }
}

}  // namespace fleetrun::engine
