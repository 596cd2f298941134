#include "runtime/trainer/local_steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "runtime/trainer/rank_mean.h"

namespace fleetrun::runtime {

namespace {

using collective::Operation;
using engine::Tensor;

constexpr std::size_t kMaxLocalSteps = 16;

void check_linear(const engine::Operator& op) {
  if (op.type == "sgd" || op.type == "momentum") return;
  throw Error(ErrorKind::config, "local SGD with " + op.type + ": it is for SGD and Momentum",
              "use one of these, or leave DistributedStrategy.localsgd at False");
}

}  // namespace

LocalSteps::LocalSteps(const engine::Program& program, engine::Scope& scope,
                       collective::Communicator& communicator, const LocalStepOptions& options)
    : communicator_(communicator), options_(options), k_steps_(options.k_steps) {
  check_collective(program);
  if (options.k_steps < 1 || options.begin_step < 1) {
    throw Error(ErrorKind::config,
                "local SGD with k_steps=" + std::to_string(options.k_steps) +
                    " and begin_step=" + std::to_string(options.begin_step),
                "both are at least 1");
  }
  for (const engine::Operator& op : program.operators()) {
    // What clips or scales gradients works on those of this rank.
    if (!is_update(op) || !program.variable(op.outputs.at(0)).trainable) continue;
    check_linear(op);
    if (parameters_.empty()) {
      rate_factor_ = engine::attribute(op, "learning_rate", 1.0);
      if (op.inputs.size() > 3 && !op.inputs[3].empty()) rate_variable_ = &scope.tensor(op.inputs[3]);
    }
    parameters_.push_back(&scope.tensor(op.inputs.at(0)));
  }
}

void LocalSteps::begin() {
  if (last_ != step_) return;
  snapshot_.clear();
  for (const Tensor* parameter : parameters_) {
    const auto values = parameter->values<float>();
    snapshot_.insert(snapshot_.end(), values.begin(), values.end());
  }
}

bool LocalSteps::after_step(bool has_trained, double loss) {
  has_trained_ = has_trained_ || has_trained;
  ++step_;
  if (options_.adaptive && step_ == 1) {
    first_rate_ = rate();
    first_loss_ = mean_over_ranks(loss);
  }
  if (step_ > options_.begin_step && step_ - last_ < k_steps_) return true;
  if (!average()) return false;
  if (options_.adaptive && step_ > options_.begin_step) adapt(rate(), mean_over_ranks(loss));
  return true;
}

void LocalSteps::synchronize() {
  if (last_ != step_) average();
}

/// false when no rank has trained since the last one.
bool LocalSteps::average() {
  last_ = step_;
  std::int64_t trained = has_trained_ ? 1 : 0;
  has_trained_ = false;
  collective::all_reduce(communicator_, {&trained, 1, collective::DataType::int64}, Operation::sum);
  if (trained == 0) return false;
  moved_.resize(snapshot_.size());
  std::size_t start = 0;
  for (const Tensor* parameter : parameters_) {
    for (const float value : parameter->values<float>()) {
      moved_[start] = snapshot_[start] - value;
      ++start;
    }
  }
  collective::all_reduce(communicator_, {moved_.data(), moved_.size(), collective::DataType::float32},
                         Operation::sum);
  for (std::size_t i = 0; i < moved_.size(); ++i) snapshot_[i] -= moved_[i] / static_cast<float>(trained);
  start = 0;
  for (Tensor* parameter : parameters_) {
    const auto values = parameter->values<float>();
    std::copy_n(snapshot_.begin() + static_cast<std::ptrdiff_t>(start), values.size(), values.begin());
    start += values.size();
  }
  return true;
}

double LocalSteps::rate() const {
  return rate_factor_ * (rate_variable_ ? static_cast<double>(rate_variable_->values<float>()[0]) : 1.0);
}

double LocalSteps::mean_over_ranks(double value) {
  collective::all_reduce(communicator_, {&value, 1, collective::DataType::float64}, Operation::avg);
  return value;
}

void LocalSteps::adapt(double rate, double loss) {
  const double scale = rate * first_loss_;
  const double ratio = scale > 0.0 ? first_rate_ * loss / scale : 0.0;
  const double steps = std::ceil(std::sqrt(ratio * static_cast<double>(options_.k_steps)));
  k_steps_ =
      std::isfinite(steps) ? static_cast<std::size_t>(std::clamp(steps, 1.0, double{kMaxLocalSteps})) : 1;
}

}  // namespace fleetrun::runtime
