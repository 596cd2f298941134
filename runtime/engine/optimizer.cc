// minimize: backward operators, then one update operator for each parameter, with its state.

#include "runtime/engine/optimizer.h"

#include "runtime/engine/operators.h"

namespace fleetrun::engine {

namespace {

bool lives_outside(const Program& main, const std::string& parameter) {
  for (const Operator& op : main.operators()) {
    if (op.type == "sparse_embedding" && attribute<std::string>(op, "parameter") == parameter) return true;
  }
  return false;
}

/// A persistable variable in both programs, filled by `startup`.
std::string add_state(Program& main, Program& startup, const Variable& like, const std::string& suffix,
                      double value) {
  Variable state;
  state.name = like.name + suffix;
  state.type = like.type;
  state.shape = like.shape;
  state.persistable = true;
  main.add_variable(state);
  startup.add_variable(state);
  startup.append(
      {.type = "fill_constant",
       .inputs = {},
       .outputs = {state.name},
       .attributes = {
           {"shape", state.shape}, {"value", value}, {"dtype", std::string(to_string(state.type))}}});
  return state.name;
}

}  // namespace

std::string_view to_string(OptimizerConfig::Kind kind) noexcept {
  switch (kind) {
    case OptimizerConfig::Kind::sgd:
      return "sgd";
    case OptimizerConfig::Kind::adagrad:
      return "adagrad";
    case OptimizerConfig::Kind::adam:
      return "adam";
  }
  return "unknown";
}

void append_update(Program& main, Program& startup, const ParameterGradient& gradient,
                   const OptimizerConfig& config) {
  const Variable parameter = main.variable(gradient.parameter);
  Operator op;
  op.type = to_string(config.kind);
  op.inputs = {parameter.name, gradient.gradient, gradient.keys};
  op.outputs = {parameter.name};
  op.attributes = {{"learning_rate", config.learning_rate},
                   {"beta1", config.beta1},
                   {"beta2", config.beta2},
                   {"epsilon", config.epsilon},
                   {"l2_decay", config.l2_decay},
                   {"lazy_rows", config.lazy_rows},
                   {std::string(kRoleAttribute), std::string("update")}};
  const auto add = [&](const Variable& like, const char* suffix, double value) {
    const std::string state = add_state(main, startup, like, suffix, value);
    op.inputs.push_back(state);
    op.outputs.push_back(state);
  };
  if (config.kind == OptimizerConfig::Kind::adagrad) {
    add(parameter, "_moment_0", config.initial_accumulator);
  } else if (config.kind == OptimizerConfig::Kind::adam) {
    add(parameter, "_moment1_0", 0.0);
    add(parameter, "_moment2_0", 0.0);
    Variable step = parameter;
    step.type = DataType::int64;
    step.shape = {1};
    add(step, "_step_0", 0.0);
  }
  main.append(std::move(op));
}

std::vector<ParameterGradient> minimize(Program& main, Program& startup, const std::string& loss,
                                        const OptimizerConfig& config) {
  auto gradients = append_backward(main, loss);
  for (const ParameterGradient& gradient : gradients) {
    if (!lives_outside(main, gradient.parameter)) append_update(main, startup, gradient, config);
  }
  return gradients;
}

}  // namespace fleetrun::engine
