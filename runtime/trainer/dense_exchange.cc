#include "runtime/trainer/dense_exchange.h"

#include <algorithm>
#include <utility>

#include "runtime/engine/operators.h"

namespace fleetrun::runtime {

namespace {

/// Smaller gradients wait for more: a request costs about as much as sending this many bytes.
constexpr std::size_t kGroupBytes = std::size_t{256} << 10;

/// How many operators have run when nothing reads or writes `name` any more; 0 when no operator makes it.
std::size_t last_use(const engine::Program& program, const std::string& name) {
  if (name.empty()) return 0;  // of a parameter that is only read
  const auto& operators = program.operators();
  const auto uses = [&name](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (std::none_of(operators.begin(), operators.end(), [&](const auto& op) { return uses(op.outputs); }))
    return 0;
  for (std::size_t i = operators.size(); i > 0; --i) {
    if (uses(operators[i - 1].inputs) || uses(operators[i - 1].outputs)) return i;
  }
  return 0;
}

}  // namespace

DenseExchange::DenseExchange(const engine::Program& program, const TablePlan& plan, ExchangeQueue& queue,
                             const DenseOptions& options)
    : queue_(queue), options_(options) {
  std::vector<Parameter> all;
  for (const TablePlan::Entry& entry : plan.entries) {
    if (entry.table.kind != ps::TableConfig::Kind::dense) continue;
    all.push_back({entry.table.id,
                   entry.parameter,
                   entry.gradient,
                   program.variable(entry.parameter).shape,
                   last_use(program, entry.gradient),
                   {},
                   {}});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Parameter& a, const Parameter& b) { return a.final_after < b.final_after; });
  std::size_t bytes = 0;
  for (Parameter& parameter : all) {
    if (groups_.empty() || bytes >= kGroupBytes) {
      groups_.emplace_back();
      bytes = 0;
    }
    bytes += static_cast<std::size_t>(engine::count(parameter.shape)) * sizeof(float);
    has_gradients_ = has_gradients_ || (options.train && parameter.final_after > 0);
    groups_.back().final_after = parameter.final_after;
    groups_.back().parameters.push_back(std::move(parameter));
  }
}

void DenseExchange::begin() {
  for (Group& group : groups_) begin_pull(group);
}

void DenseExchange::begin_pull(Group& group) {
  ps::Pull request;
  for (Parameter& parameter : group.parameters) {
    parameter.values.resize(engine::DataType::float32, parameter.shape);
    request.dense.push_back({parameter.table, parameter.values.values<float>()});
  }
  if (options_.train) request.thread = options_.thread;
  group.pull = queue_.pull_async(std::move(request));
}

void DenseExchange::finish(engine::Executor& executor) {
  for (Group& group : groups_) {
    if (auto push = std::move(group.push)) push->wait();
    auto pull = std::move(group.pull);
    if (!pull) continue;
    pull->wait();
    for (Parameter& parameter : group.parameters)
      std::swap(executor.tensor(parameter.name), parameter.values);
  }
}

void DenseExchange::after_operator(engine::Executor& executor) {
  ++operators_run_;
  while (has_gradients_ && options_.pushes && next_group_ < groups_.size() &&
         groups_[next_group_].final_after <= operators_run_) {
    Group& group = groups_[next_group_++];
    ps::Push request;
    request.thread = options_.thread;
    for (Parameter& parameter : group.parameters) {
      if (parameter.final_after == 0) continue;
      std::swap(executor.tensor(parameter.gradient_name), parameter.gradient);
      request.dense.push_back({parameter.table, std::as_const(parameter.gradient).values<float>()});
    }
    if (!request.dense.empty()) group.push = queue_.push_async(std::move(request));
    if (is_pull_due()) begin_pull(group);
  }
}

void DenseExchange::end_step() {
  if (has_gradients_ && !options_.pushes && is_pull_due()) begin();
  operators_run_ = next_group_ = 0;
  ++steps_;
}

void DenseExchange::drain() {
  for (Group& group : groups_) {
    if (auto push = std::move(group.push)) push->wait();
    if (auto pull = std::move(group.pull)) pull->wait();
  }
}

}  // namespace fleetrun::runtime
