#include "runtime/trainer/step_runner.h"

#include <functional>
#include <utility>

#include "runtime/engine/failed_step.h"
#include "runtime/engine/operators.h"
#include "runtime/trainer/epoch_profile.h"
#include "runtime/trainer/parameter_exchange.h"

namespace fleetrun::runtime {

struct StepRunner::State {
  ps::StepClient* client;
  ps::Mode mode;
  EpochProfile profile;
  ParameterExchange exchange;
  engine::Executor executor;
  engine::StepKeeper keeper;
  bool in_epoch = false;
  bool has_tables;
  bool checks_values = false;
  std::uint64_t runs = 0;

  State(const engine::Program& program, engine::Scope& scope, const TablePlan& plan,
        ps::StepClient* in_client, ps::Mode in_mode, Track track)
      : client(in_client),
        mode(in_mode),
        profile(false, std::move(track)),
        exchange(program, plan, in_client, {.track = &profile.track()}),
        executor(program, scope, plan.entries.empty() ? nullptr : &exchange),
        keeper(program, plan.entries.empty() ? nullptr : &exchange, executor),
        has_tables(!plan.entries.empty()) {
    exchange.attach(executor);
  }

  void compute(const std::map<std::string, const engine::Tensor*>& feed) {
    ++runs;
    const auto which = [this] { return "run " + std::to_string(runs); };
    keeper.watch(feed, which, [&] { compute(feed, which); });
  }
  void compute(const std::map<std::string, const engine::Tensor*>& feed,
               const std::function<std::string()>& which) {
    profile.timed(Stage::compute, [&] {
      if (!profile.wants_operators() && !checks_values) return executor.run(feed);
      executor.run(feed, [&](const engine::Operator& op, double seconds) {
        if (profile.wants_operators()) profile.ran(op, seconds);
        if (checks_values) executor.expect_finite(op, which);
      });
    });
  }
  void step(const std::map<std::string, const engine::Tensor*>& feed);
};

StepRunner::StepRunner(const engine::Program& program, engine::Scope& scope, const TablePlan& plan,
                       ps::StepClient* client, ps::Mode mode, Track track)
    : state_(std::make_unique<State>(program, scope, plan, client, mode, std::move(track))) {
  engine::check_values_are_made(program);
}

StepRunner::~StepRunner() = default;

void StepRunner::run(const std::map<std::string, const engine::Tensor*>& feed) {
  state_->step(feed);
  state_->profile.track().flush();
}

void StepRunner::State::step(const std::map<std::string, const engine::Tensor*>& feed) {
  if (!has_tables) return compute(feed);
  if (!in_epoch) {
    if (mode != ps::Mode::async) client->begin_epoch(1);
    in_epoch = true;
  }
  profile.timed(Stage::pull, [&] {
    exchange.begin_pull(feed);
    exchange.finish_pull();
  });
  compute(feed);
  profile.timed(Stage::push, [&] { exchange.push(); });
}

void StepRunner::expect_finite() {
  state_->checks_values = true;
  state_->keeper.expect_finite();
}

const engine::Tensor& StepRunner::tensor(const std::string& name) const {
  return state_->executor.tensor(name);
}

void StepRunner::end_epoch() {
  if (!state_->in_epoch) return;
  state_->in_epoch = false;
  state_->client->leave_epoch(0);
}

}  // namespace fleetrun::runtime
