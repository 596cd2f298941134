#include "runtime/trainer/gradient_exchange.h"

#include <string>
#include <utility>

#include "runtime/engine/operators.h"
#include "runtime/engine/passes/reduce_schedule.h"

namespace fleetrun::runtime {

using engine::Executor;
using engine::Program;
using engine::StepGradient;

namespace {

Program scheduled(const Program& program, const RankMeanOptions& options) {
  check_collective(program);
  const std::vector<StepGradient> gradients = engine::gradients_of(program);
  std::vector<engine::ReduceBucket> buckets;
  for (const auto& indexes : buckets_of(gradients, options)) {
    engine::ReduceBucket& bucket = buckets.emplace_back();
    for (const std::size_t index : indexes) bucket.push_back(gradients[index].name);
  }
  return engine::schedule_reduction(program, buckets);
}

/// The gradients of the program without a schedule, as the executor has them.
std::vector<StepGradient> gradients_in(const Program& program, Executor& executor) {
  std::vector<StepGradient> gradients = engine::gradients_of(program);
  for (StepGradient& gradient : gradients) {
    gradient.values = &executor.tensor(gradient.name);
    if (!gradient.keys_name.empty()) gradient.keys = &executor.tensor(gradient.keys_name);
  }
  return gradients;
}

}  // namespace

struct GradientExchange::State {
  enum class Step { none, start, wait, rest };
  struct Action {
    Step step = Step::none;
    std::size_t bucket = 0;
  };

  Program program;
  Executor executor;
  RankMean mean;
  std::vector<Action> actions;  // by operator

  State(const Program& original, engine::Scope& scope, std::vector<collective::Communicator*> communicators,
        const RankMeanOptions& options)
      : program(scheduled(original, options)),
        executor(program, scope),
        mean(gradients_in(original, executor), std::move(communicators), options,
             options.compression ? momentums_of(original, scope) : std::map<std::string, Momentum>()) {
    for (const engine::Operator& op : program.operators()) {
      Action& action = actions.emplace_back();
      if (op.type == "reduce_start") action.step = Step::start;
      if (op.type == "reduce_wait") action.step = Step::wait;
      if (op.type == "reduce_rest") action.step = Step::rest;
      action.bucket = static_cast<std::size_t>(engine::attribute(op, "bucket", std::int64_t{0}));
    }
  }

  void act(const Action& action) {
    switch (action.step) {
      case Step::none:
        return;
      case Step::start:
        return mean.start(action.bucket);
      case Step::wait:
        return mean.finish(action.bucket);
      case Step::rest:
        return mean.finish_rest();
    }
  }
};

GradientExchange::GradientExchange(const Program& program, engine::Scope& scope,
                                   std::vector<collective::Communicator*> communicators,
                                   const RankMeanOptions& options)
    : state_(std::make_unique<State>(program, scope, std::move(communicators), options)) {}

GradientExchange::~GradientExchange() = default;

void GradientExchange::run(const std::map<std::string, const engine::Tensor*>& feed, EpochProfile* profile) {
  if (profile == nullptr || !profile->wants_operators())
    return state_->executor.run_with(feed,
                                     [this](std::size_t index) { state_->act(state_->actions[index]); });
  auto since = EpochProfile::Clock::now();
  const auto ended = [&](Stage stage) {
    const auto now = EpochProfile::Clock::now();
    profile->add(stage, since, now);
    since = now;
  };
  state_->executor.run_with(
      feed,
      [&](std::size_t index) {
        const State::Action& action = state_->actions[index];
        const bool waits = action.step == State::Step::wait || action.step == State::Step::rest;
        if (waits) ended(Stage::compute);
        state_->act(action);
        if (waits) ended(Stage::exchange);
      },
      [&](const engine::Operator& op, double seconds) { profile->ran(op, seconds); });
  ended(Stage::compute);
}

const Executor& GradientExchange::executor() const noexcept {
  return state_->executor;
}

const Program& GradientExchange::program() const noexcept {
  return state_->program;
}

std::size_t GradientExchange::buckets() const noexcept {
  return state_->mean.buckets();
}

}  // namespace fleetrun::runtime
