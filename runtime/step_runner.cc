#include "runtime/step_runner.h"

#include "runtime/parameter_exchange.h"

namespace fleetrun::runtime {

struct StepRunner::State {
  ps::Client* client;
  ps::Mode mode;
  ParameterExchange exchange;
  engine::Executor executor;
  bool in_pass = false;
  bool has_tables;
  bool checks_values = false;
  std::uint64_t runs = 0;

  State(const engine::Program& program, engine::Scope& scope, const TablePlan& plan, ps::Client* in_client,
        ps::Mode in_mode)
      : client(in_client),
        mode(in_mode),
        exchange(program, plan, in_client, {}),
        executor(program, scope, plan.entries.empty() ? nullptr : &exchange),
        has_tables(!plan.entries.empty()) {
    exchange.attach(executor);
  }

  void compute(const std::map<std::string, const engine::Tensor*>& feed) {
    ++runs;
    if (!checks_values) return executor.run(feed);
    executor.run(feed, [this](const engine::Operator& op, double) {
      executor.expect_finite(op, [this] { return "run " + std::to_string(runs); });
    });
  }
};

StepRunner::StepRunner(const engine::Program& program, engine::Scope& scope, const TablePlan& plan,
                       ps::Client* client, ps::Mode mode)
    : state_(std::make_unique<State>(program, scope, plan, client, mode)) {}

StepRunner::~StepRunner() = default;

void StepRunner::run(const std::map<std::string, const engine::Tensor*>& feed) {
  if (!state_->has_tables) return state_->compute(feed);
  if (!state_->in_pass) {
    if (state_->mode != ps::Mode::async) state_->client->begin_pass(1);
    state_->in_pass = true;
  }
  state_->exchange.begin_pull(feed);
  state_->exchange.finish_pull();
  state_->compute(feed);
  state_->exchange.push();
}

void StepRunner::expect_finite() {
  state_->checks_values = true;
}

const engine::Tensor& StepRunner::tensor(const std::string& name) const {
  return state_->executor.tensor(name);
}

void StepRunner::end_pass() {
  if (!state_->in_pass) return;
  state_->in_pass = false;
  state_->client->leave_pass(0);
}

}  // namespace fleetrun::runtime
