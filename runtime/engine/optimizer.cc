// minimize: backward operators, then one update operator for each parameter, with its state.

#include "runtime/engine/optimizer.h"

#include "runtime/base/error.h"
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

/// Appends operators between the backward ones and the updates.
class GradientClipping {
 public:
  GradientClipping(Program& main, const OptimizerConfig& config, const std::string& role)
      : main_(main), config_(config), role_(role) {}

  void take(ParameterGradient& gradient) {
    using enum OptimizerConfig::Clip;
    if (config_.clip_kind == value) return clip_values(gradient);
    const std::string squares = gradient.gradient + "@SQUARES";
    append({.type = "gradient_squares",
            .inputs = {gradient.gradient, gradient.keys},
            .outputs = {squares},
            .attributes = {}});
    squares_.push_back(squares);
    taken_.push_back(&gradient);
    if (config_.clip_kind == norm) finish();
  }

  /// Scales what was taken since it was called last, by the norm of all of it.
  void finish() {
    if (taken_.empty()) return;
    const std::string factor = taken_.front()->gradient + "@FACTOR";
    append({.type = "clip_factor",
            .inputs = squares_,
            .outputs = {factor},
            .attributes = {{"norm", config_.clip}}});
    for (ParameterGradient* gradient : taken_) {
      replace(*gradient, {.type = "elementwise_mul",
                          .inputs = {gradient->gradient, factor},
                          .outputs = {},
                          .attributes = {}});
    }
    taken_.clear();
    squares_.clear();
  }

 private:
  void clip_values(ParameterGradient& gradient) {
    if (gradient.rows) return clip_rows(gradient);
    replace(gradient, {.type = "clip",
                       .inputs = {gradient.gradient},
                       .outputs = {},
                       .attributes = {{"min", config_.clip_least}, {"max", config_.clip}}});
  }

  void clip_rows(ParameterGradient& gradient) {
    Operator op{.type = "clip_rows",
                .inputs = {gradient.gradient, gradient.keys},
                .outputs = {gradient.gradient + "@CLIP", gradient.gradient + "@CLIP@KEYS"},
                .attributes = {{"min", config_.clip_least}, {"max", config_.clip}}};
    gradient.gradient = op.outputs[0];
    gradient.keys = op.outputs[1];
    append(std::move(op));
  }

  void replace(ParameterGradient& gradient, Operator op) {
    gradient.gradient += "@CLIP";
    op.outputs = {gradient.gradient};
    append(std::move(op));
  }

  void append(Operator op) {
    op.attributes[std::string(kRoleAttribute)] = role_;
    main_.append(std::move(op));
  }

  Program& main_;
  const OptimizerConfig& config_;
  const std::string& role_;
  std::vector<ParameterGradient*> taken_;
  std::vector<std::string> squares_;
};

}  // namespace

std::string_view to_string(OptimizerConfig::Kind kind) noexcept {
  switch (kind) {
    case OptimizerConfig::Kind::sgd:
      return "sgd";
    case OptimizerConfig::Kind::adagrad:
      return "adagrad";
    case OptimizerConfig::Kind::adam:
      return "adam";
    case OptimizerConfig::Kind::momentum:
      return "momentum";
    case OptimizerConfig::Kind::ftrl:
      return "ftrl";
    case OptimizerConfig::Kind::rmsprop:
      return "rmsprop";
    case OptimizerConfig::Kind::adamax:
      return "adamax";
    case OptimizerConfig::Kind::adadelta:
      return "adadelta";
    case OptimizerConfig::Kind::lamb:
      return "lamb";
    case OptimizerConfig::Kind::lars_momentum:
      return "lars_momentum";
    case OptimizerConfig::Kind::decayed_adagrad:
      return "decayed_adagrad";
  }
  return "unknown";
}

OptimizerConfig config_of(const OptimizerConfig& config, const std::string& parameter) {
  OptimizerConfig result = config;
  result.own.clear();
  if (result.undecayed.contains(parameter)) result.own_decay = 0.0;
  result.undecayed.clear();
  const auto found = config.own.find(parameter);
  if (found == config.own.end()) return result;
  result.learning_rate *= found->second.rate_factor;
  if (!found->second.has_decay) return result;
  result.l1_decay = found->second.l1_decay;
  result.l2_decay = found->second.l2_decay;
  return result;
}

void decay_all_rows(Program& main, const OptimizerConfig& config) {
  for (Operator& op : main.operators()) {
    if (op.type == "embedding" && config_of(config, op.inputs[0]).takes_all_rows())
      op.attributes["is_sparse"] = false;
  }
}

void append_update(Program& main, Program& startup, const ParameterGradient& gradient,
                   const OptimizerConfig& shared) {
  using enum OptimizerConfig::Kind;
  const Variable parameter = main.variable(gradient.parameter);
  const OptimizerConfig config = config_of(shared, gradient.parameter);
  Operator op;
  op.type = to_string(config.kind);
  op.inputs = {parameter.name, gradient.gradient, gradient.keys, config.rate};
  op.outputs = {parameter.name};
  op.attributes = {{"learning_rate", config.learning_rate},
                   {"beta1", config.beta1},
                   {"beta2", config.beta2},
                   {"epsilon", config.epsilon},
                   {"momentum", config.momentum},
                   {"nesterov", config.nesterov},
                   {"rho", config.rho},
                   {"centered", config.centered},
                   {"l1", config.l1},
                   {"l2", config.l2},
                   {"learning_rate_power", config.learning_rate_power},
                   {"l1_decay", config.l1_decay},
                   {"l2_decay", config.l2_decay},
                   {"lazy_rows", config.lazy_rows},
                   {"own_decay", config.own_decay},
                   {"older_formula", config.older_formula},
                   {"always_adapts", config.always_adapts},
                   {"lars_coefficient", config.lars_coefficient},
                   {std::string(kRoleAttribute), std::string("update")}};
  const auto number = config.state_numbers.find(parameter.name);
  const std::string end = "_" + std::to_string(number == config.state_numbers.end() ? 0 : number->second);
  const auto add = [&](const Variable& like, const char* suffix, double value) {
    const std::string state = add_state(main, startup, like, suffix + end, value);
    op.inputs.push_back(state);
    op.outputs.push_back(state);
  };
  const auto add_step = [&] {
    Variable step = parameter;
    step.type = DataType::int64;
    step.shape = {1};
    add(step, "_step", 0.0);
  };
  switch (config.kind) {
    case sgd:
      break;
    case adagrad:
      add(parameter, "_moment", config.initial_accumulator);
      break;
    case decayed_adagrad:
      add(parameter, "_moment", 0.0);
      break;
    case momentum:
    case lars_momentum:
      add(parameter, "_velocity", 0.0);
      break;
    case ftrl:
      add(parameter, "_squared", config.initial_accumulator);
      add(parameter, "_linear", 0.0);
      break;
    case rmsprop:
      add(parameter, "_mean_square", 0.0);
      add(parameter, "_momentum", 0.0);
      add(parameter, "_mean_grad", 0.0);
      break;
    case adam:
    case lamb:
      add(parameter, "_moment1", 0.0);
      add(parameter, "_moment2", 0.0);
      add_step();
      break;
    case adamax:
      add(parameter, "_moment", 0.0);
      add(parameter, "_inf_norm", 0.0);
      add_step();
      break;
    case adadelta:
      add(parameter, "__avg_squared_grad", 0.0);
      add(parameter, "__avg_squared_update", 0.0);
      break;
  }
  main.append(std::move(op));
}

void append_clip(Program& main, std::vector<ParameterGradient>& gradients, const OptimizerConfig& config,
                 const std::string& role) {
  if (config.clip_kind == OptimizerConfig::Clip::none) return;
  GradientClipping clipping(main, config, role);
  for (ParameterGradient& gradient : gradients) {
    const auto own = config.own.find(gradient.parameter);
    if (own == config.own.end() || own->second.is_clipped) clipping.take(gradient);
  }
  clipping.finish();
}

std::vector<ParameterGradient> minimize(Program& main, Program& startup, const std::string& loss,
                                        const OptimizerConfig& config) {
  decay_all_rows(main, config);
  auto gradients = append_backward(main, loss);
  append_clip(main, gradients, config);
  for (const ParameterGradient& gradient : gradients) {
    if (!lives_outside(main, gradient.parameter)) append_update(main, startup, gradient, config);
  }
  return gradients;
}

}  // namespace fleetrun::engine
