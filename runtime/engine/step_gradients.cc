#include "runtime/engine/step_gradients.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "runtime/engine/operators.h"

namespace fleetrun::engine {

namespace {

constexpr std::string_view kKeys = "@KEYS";

/// Whose gradient `gradient` is, which `op` reads: of one that is clipped first its name says so.
std::string parameter_of(const Program& program, const Operator& op, const std::string& gradient) {
  const std::string parameter = gradient.substr(0, gradient.find("@GRAD"));
  return program.has_variable(parameter) ? parameter : op.inputs.at(0);
}

}  // namespace

std::vector<StepGradient> gradients_of(const Program& program) {
  std::map<std::string, std::size_t> writers;
  std::set<std::string> found;
  std::vector<StepGradient> gradients;
  const auto& operators = program.operators();
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = operators[i];
    if (!is_update(op)) {
      for (const std::string& output : op.outputs) writers[output] = i;
      continue;
    }
    for (const std::string& input : op.inputs) {
      const bool computed = !input.empty() && writers.contains(input) && !program.variable(input).persistable;
      if (!computed || input.ends_with(kKeys) || !found.insert(input).second) continue;
      StepGradient& gradient = gradients.emplace_back();
      gradient.parameter = parameter_of(program, op, input);
      const auto count = engine::count(program.variable(gradient.parameter).shape);
      gradient.name = input;
      if (program.has_variable(input + std::string(kKeys))) gradient.keys_name = input + std::string(kKeys);
      gradient.count = static_cast<std::size_t>(count);
      gradient.last_writer = writers.at(input);
    }
  }
  std::ranges::stable_sort(gradients, {}, &StepGradient::last_writer);
  return gradients;
}

}  // namespace fleetrun::engine
