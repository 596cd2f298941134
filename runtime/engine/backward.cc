// append_backward: walks the operators from the loss to the parameters.
//
// A variable that is used k times gets k gradients, added up (add_n) just before its producer is
// differentiated; the first is called v@GRAD and the sum is written over it. A parameter that is only looked
// up, by lookups that ask for rows (sparse_embedding, embedding with is_sparse), gets one row gradient for
// all of them: one `row_gradient` operator at the end. A value that a gradient reads, and that a later
// operator writes over, is copied before that one: v@KEPT.

#include <algorithm>
#include <set>

#include "runtime/base/error.h"
#include "runtime/engine/gradients.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/program.h"

namespace fleetrun::engine {

namespace {

bool is_row_lookup(const Operator& op) {
  return op.type == "sparse_embedding" || (op.type == "embedding" && attribute(op, "is_sparse", false));
}

const std::string& parameter_of(const Operator& lookup) {
  if (lookup.type == "embedding") return lookup.inputs[0];
  return std::get<std::string>(lookup.attributes.at("parameter"));
}

struct RowLookups {
  std::vector<std::string> values;
  std::vector<std::string> ids;
  std::vector<std::int64_t> paddings;
  std::int64_t statistics = 0;
  bool times_batch = false;
};

class Backward final : public GradientBuilder {
 public:
  explicit Backward(Program& program) : program_(program) {}

  std::vector<ParameterGradient> run(const std::string& loss, const std::set<std::string>& asked);
  std::map<std::string, std::string> run(const std::map<std::string, std::string>& given,
                                         const std::set<std::string>& wanted);

  const Operator& op() const noexcept override { return op_; }
  const Program& program() const noexcept override { return program_; }

  std::string output_gradient(std::size_t index) const override {
    const auto found = reached_.find(op_.outputs[index]);
    return found == reached_.end() ? std::string() : found->second;
  }

  bool wants(std::size_t index) const override {
    return index < op_.inputs.size() && wanted_.contains(op_.inputs[index]);
  }

  std::string input_gradient(std::size_t index) override {
    return wants(index) ? new_gradient(op_.inputs[index]) : std::string();
  }

  bool row_gradient(const std::string& parameter, const std::string& values,
                    const std::string& ids) override {
    if (dense_.contains(parameter)) return false;
    RowLookups& lookups = rows_[parameter];
    lookups.values.push_back(values);
    lookups.ids.push_back(ids);
    // As in Paddle, whose rows of padding_idx move where the parameter is here: a norm over all gradients has
    // them, and so has a lookup without padding_idx.
    const bool here = op_.type == "embedding";
    lookups.paddings.push_back(here ? -1 : attribute(op_, "padding_idx", std::int64_t{-1}));
    lookups.statistics = attribute(op_, "statistics", std::int64_t{0});
    lookups.times_batch = attribute(op_, "times_batch", false);
    return true;
  }

  void append(Operator op) override {
    // expand_as(x, y) is reached where y alone wants a gradient, and has none for it.
    if (!op.outputs.empty() && std::ranges::all_of(op.outputs, &std::string::empty)) return;
    op.attributes[std::string(kRoleAttribute)] = std::string("backward");
    op.where = op_.where;
    for (std::string& input : op.inputs) input = value_then(input);
    program_.append(std::move(op));
  }

 private:
  /// A value that is written over, as it was before.
  struct Kept {
    std::string value, copy, where;
  };

  void mark_overwritten(std::size_t operators);
  std::string value_then(const std::string& name);
  void keep_values();
  void mark_sources();
  void mark_wanted(std::size_t operators);
  void expect_gradients_of_gradients(const std::string& loss) const;
  void differentiate(std::size_t at);
  void add_up(const std::string& name);
  void append_row_gradient(const std::string& parameter, const RowLookups& lookups);
  std::string new_gradient(const std::string& name);
  void declare_gradient(const std::string& gradient, const Variable& of);

  Program& program_;
  Operator op_;
  std::size_t at_ = 0;  // where op_ stands
  /// Which operators write a variable, ascending.
  std::map<std::string, std::vector<std::size_t>> writers_;
  std::multimap<std::size_t, Kept> kept_;  // by the operator that writes over the value
  /// Variables that need a gradient: a trainable parameter is among their ancestors, or what is fed and has
  /// stop_gradient=False.
  std::set<std::string> wanted_;
  /// Parameters of lookups that are used in another way too.
  std::set<std::string> dense_;
  /// Of values that later operators read, and of the outputs of the operator that is being differentiated.
  std::map<std::string, std::vector<std::string>> gradients_;
  std::map<std::string, std::string> reached_;
  std::map<std::string, RowLookups> rows_;
};

void Backward::mark_sources() {
  for (const auto& [name, variable] : program_.variables()) {
    const bool is_asked = variable.trainable || (variable.is_data && !variable.stop_gradient);
    if (is_asked && has_gradients(variable.type)) wanted_.insert(name);
  }
}

void Backward::mark_wanted(std::size_t operators) {
  std::map<std::string, std::pair<int, int>> uses;  // by row lookups, otherwise
  for (std::size_t i = 0; i < operators; ++i) {
    const Operator& op = program_.operators()[i];
    const bool lookup = is_row_lookup(op);
    if (lookup) uses[parameter_of(op)].first++;
    const OperatorDefinition* definition = find_operator(op.type);
    bool wanted = definition->has_parameter;
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (!(lookup && op.type == "embedding" && k == 0)) uses[op.inputs[k]].second++;
      wanted = wanted || wanted_.contains(op.inputs[k]);
    }
    if (!wanted) continue;
    for (const std::string& output : op.outputs) {
      if (output.empty() || program_.variable(output).trainable) continue;
      const Variable& variable = program_.variable(output);
      if (definition->gradient == nullptr || variable.stop_gradient || !has_gradients(variable.type))
        continue;
      wanted_.insert(output);
    }
  }
  for (const auto& [name, count] : uses) {
    if (count.first > 0 && count.second > 0) dense_.insert(name);
  }
}

/// Throws where the loss is computed from a gradient through which none would flow to what wants it.
void Backward::expect_gradients_of_gradients(const std::string& loss) const {
  std::set<std::string> needed{loss};
  const auto& operators = program_.operators();
  for (auto op = operators.rbegin(); op != operators.rend(); ++op) {
    const auto made = std::ranges::find_if(op->outputs, [&](const std::string& name) {
      return needed.contains(name) && !program_.variable(name).stop_gradient;
    });
    if (made == op->outputs.end()) continue;
    needed.insert(op->inputs.begin(), op->inputs.end());
    const bool is_asked =
        std::ranges::any_of(op->inputs, [&](const std::string& name) { return wanted_.contains(name); });
    if (!is_asked || !has_role(*op, "backward") || find_operator(op->type)->gradient != nullptr) continue;
    throw Error(ErrorKind::config,
                loss + " is computed from " + *made + ", a gradient of " + op->type +
                    ", which has none of its own here",
                "take it for a constant (" + *made + ".stop_gradient = True), or train with the real Paddle");
  }
}

void Backward::declare_gradient(const std::string& gradient, const Variable& of) {
  Variable variable;
  variable.name = gradient;
  variable.type = of.type;
  variable.shape = of.shape;
  variable.stop_gradient = false;
  program_.add_variable(std::move(variable));
}

std::string Backward::new_gradient(const std::string& name) {
  std::vector<std::string>& all = gradients_[name];
  std::string gradient = name + "@GRAD";
  for (int k = 1; program_.has_variable(gradient); ++k) gradient = name + "@GRAD@" + std::to_string(k);
  declare_gradient(gradient, program_.variable(name));
  all.push_back(gradient);
  return gradient;
}

void Backward::add_up(const std::string& name) {
  const auto found = gradients_.find(name);
  if (found == gradients_.end() || found->second.size() < 2) return;
  append({.type = "add_n", .inputs = found->second, .outputs = {found->second.front()}, .attributes = {}});
  found->second.resize(1);
}

// What outlives a run is read as it is then, as in Paddle: parameters that another loss has moved.
void Backward::mark_overwritten(std::size_t operators) {
  for (std::size_t i = 0; i < operators; ++i) {
    for (const std::string& output : program_.operators()[i].outputs)
      if (!output.empty() && !program_.variable(output).persistable) writers_[output].push_back(i);
  }
}

/// The name under which a gradient of op_ finds what `name` was when op_ had run.
std::string Backward::value_then(const std::string& name) {
  const auto writers = writers_.find(name);
  if (writers == writers_.end()) return name;
  if (!std::ranges::count(op_.inputs, name) && !std::ranges::count(op_.outputs, name)) return name;
  const auto over = std::ranges::upper_bound(writers->second, at_);
  if (over == writers->second.end()) return name;
  const auto [first, last] = kept_.equal_range(*over);
  const auto same = std::find_if(first, last, [&](const auto& entry) { return entry.second.value == name; });
  if (same != last) return same->second.copy;
  std::string copy = name + "@KEPT";
  for (int k = 1; program_.has_variable(copy); ++k) copy = name + "@KEPT@" + std::to_string(k);
  Variable variable = program_.variable(name);
  variable.name = copy;
  variable.is_data = false;
  program_.add_variable(std::move(variable));
  kept_.emplace(*over, Kept{name, copy, op_.where});
  return copy;
}

void Backward::keep_values() {
  for (auto entry = kept_.rbegin(); entry != kept_.rend(); ++entry) {
    const Kept& kept = entry->second;
    auto& operators = program_.operators();
    operators.insert(operators.begin() + static_cast<std::ptrdiff_t>(entry->first),
                     Operator{.type = "assign",
                              .inputs = {kept.value},
                              .outputs = {kept.copy},
                              .attributes = {},
                              .where = kept.where});
  }
}

void Backward::differentiate(std::size_t at) {
  op_ = program_.operators()[at];
  at_ = at;
  reached_.clear();
  for (const std::string& output : op_.outputs) {
    if (!wanted_.contains(output)) continue;
    add_up(output);
    // Taken, because an operator before this one may have made a value of the same name, which has its own.
    if (auto found = gradients_.extract(output)) reached_[output] = found.mapped().front();
  }
  if (reached_.empty()) return;
  const OperatorDefinition* definition = find_operator(op_.type);
  // One without may have made a value whose name an operator behind it writes to again.
  if (definition->gradient != nullptr) definition->gradient(*this);
}

void Backward::append_row_gradient(const std::string& parameter, const RowLookups& lookups) {
  const std::string values = parameter + "@GRAD";
  const std::string keys = values + "@KEYS";
  const std::int64_t width = program_.variable(lookups.values.front()).shape.back() - lookups.statistics;
  program_.add_variable({.name = values, .type = DataType::float32, .shape = {-1, width}});
  program_.add_variable({.name = keys, .type = DataType::int64, .shape = {-1}});
  Operator op{.type = "row_gradient", .inputs = {}, .outputs = {values, keys}, .attributes = {}};
  for (std::size_t i = 0; i < lookups.values.size(); ++i) {
    op.inputs.push_back(lookups.values[i]);
    op.inputs.push_back(lookups.ids[i]);
  }
  op.attributes["paddings"] = lookups.paddings;
  op.attributes["width"] = width;
  if (lookups.statistics > 0) op.attributes["statistics"] = lookups.statistics;
  if (lookups.times_batch) op.attributes["times_batch"] = true;
  append(std::move(op));
}

std::map<std::string, std::string> Backward::run(const std::map<std::string, std::string>& given,
                                                 const std::set<std::string>& wanted) {
  const std::size_t operators = program_.operators().size();
  wanted_ = wanted;
  mark_sources();
  mark_wanted(operators);
  mark_overwritten(operators);
  for (std::size_t i = 0; i < operators; ++i) {
    const Operator& op = program_.operators()[i];
    if (is_row_lookup(op)) dense_.insert(parameter_of(op));
  }
  for (const auto& [name, gradient] : given) gradients_[name].push_back(gradient);
  for (std::size_t i = operators; i-- > 0;) differentiate(i);
  std::map<std::string, std::string> result;
  for (const std::string& name : wanted) {
    if (!gradients_.contains(name)) continue;
    add_up(name);
    result[name] = gradients_[name].front();
  }
  keep_values();
  return result;
}

std::vector<ParameterGradient> Backward::run(const std::string& name_of_loss,
                                             const std::set<std::string>& asked) {
  const Variable& loss = program_.variable(name_of_loss);
  if (count(loss.shape) != 1) {
    throw Error(ErrorKind::config, "the loss '" + name_of_loss + "' has the shape " + to_string(loss.shape),
                "take its mean or its sum: a loss is one value");
  }
  const std::size_t operators = program_.operators().size();
  wanted_ = asked;
  if (asked.empty()) mark_sources();
  mark_wanted(operators);
  mark_overwritten(operators);
  expect_gradients_of_gradients(name_of_loss);
  if (!wanted_.contains(name_of_loss)) {
    if (!asked.empty()) return {};
    throw Error(
        ErrorKind::config,
        "the loss '" + name_of_loss + "' depends on no trainable parameter through differentiable operators");
  }
  const std::string seed = new_gradient(name_of_loss);
  append(
      {.type = "fill_constant",
       .inputs = {},
       .outputs = {seed},
       .attributes = {{"shape", loss.shape}, {"value", 1.0}, {"dtype", std::string(to_string(loss.type))}}});
  for (std::size_t i = operators; i-- > 0;) differentiate(i);

  std::vector<ParameterGradient> result;
  std::vector<std::string> parameters;
  std::vector<std::string> fed;
  for (const auto& [name, variable] : program_.variables()) {
    if (variable.trainable)
      parameters.push_back(name);
    else if (variable.is_data && wanted_.contains(name))
      fed.push_back(name);
  }
  for (const std::string& name : fed) add_up(name);
  for (const std::string& name : asked) add_up(name);
  for (const std::string& name : parameters) {
    if (const auto rows = rows_.find(name); rows != rows_.end()) {
      append_row_gradient(name, rows->second);
      result.push_back(
          {.parameter = name, .gradient = name + "@GRAD", .rows = true, .keys = name + "@GRAD@KEYS"});
    } else if (gradients_.contains(name)) {
      add_up(name);
      result.push_back({.parameter = name, .gradient = gradients_[name].front(), .rows = false, .keys = {}});
    }
  }
  keep_values();
  return result;
}

}  // namespace

std::vector<ParameterGradient> append_backward(Program& program, const std::string& loss,
                                               const std::set<std::string>& asked) {
  return Backward(program).run(loss, asked);
}

std::map<std::string, std::string> append_gradients(Program& program,
                                                    const std::map<std::string, std::string>& given,
                                                    const std::set<std::string>& wanted) {
  return Backward(program).run(given, wanted);
}

}  // namespace fleetrun::engine
