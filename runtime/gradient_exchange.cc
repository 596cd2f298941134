#include "runtime/gradient_exchange.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/engine/operators.h"

namespace fleetrun::runtime {

using engine::Executor;
using engine::Program;
using engine::StepGradient;

namespace {

std::vector<StepGradient> gradients_in(const Program& program, Executor& executor) {
  check_collective(program);
  std::vector<StepGradient> gradients = engine::gradients_of(program);
  for (StepGradient& gradient : gradients) {
    gradient.values = &executor.tensor(gradient.name);
    if (!gradient.keys_name.empty()) gradient.keys = &executor.tensor(gradient.keys_name);
  }
  return gradients;
}

std::optional<std::size_t> first_update(const Program& program) {
  const auto& operators = program.operators();
  const auto update = std::ranges::find_if(operators, [](const engine::Operator& op) {
    return engine::attribute(op, std::string(engine::kRoleAttribute), std::string()) == "update";
  });
  if (update == operators.end()) return std::nullopt;
  return static_cast<std::size_t>(update - operators.begin());
}

}  // namespace

struct GradientExchange::State {
  Executor& executor;
  RankMean mean;
  std::optional<std::size_t> first_update;

  void before(std::size_t index) {
    if (index == first_update) {
      mean.finish();
    } else if (first_update && index < *first_update) {
      mean.start(index);
    }
  }
};

GradientExchange::GradientExchange(const Program& program, engine::Scope& scope, Executor& executor,
                                   std::vector<collective::Communicator*> communicators,
                                   const RankMeanOptions& options)
    : state_(
          new State{executor,
                    {gradients_in(program, executor), std::move(communicators), options,
                     options.compression ? momentums_of(program, scope) : std::map<std::string, Momentum>()},
                    first_update(program)}) {}

GradientExchange::~GradientExchange() = default;

void GradientExchange::run(const std::map<std::string, const engine::Tensor*>& feed) {
  state_->executor.run_with(feed, [this](std::size_t index) { state_->before(index); });
}

std::size_t GradientExchange::buckets() const noexcept {
  return state_->mean.buckets();
}

}  // namespace fleetrun::runtime
