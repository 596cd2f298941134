#include "runtime/trainer/replica_tables.h"

#include <algorithm>
#include <span>

#include "runtime/engine/operators.h"

namespace fleetrun::runtime {

using engine::Replicas;
using engine::Tensor;

namespace {

bool is_by_example(const engine::Program& program, const std::string& gradient) {
  return std::ranges::any_of(program.operators(), [&](const engine::Operator& op) {
    return engine::attribute(op, "times_batch", false) &&
           std::ranges::find(op.outputs, gradient) != op.outputs.end();
  });
}

/// values += more * factor; of the first replica the values themselves.
void add(std::vector<float>& values, std::span<const float> more, float factor, bool is_first) {
  if (is_first) values.assign(more.size(), 0.0f);
  for (std::size_t i = 0; i < more.size(); ++i) values[i] += more[i] * factor;
}

void append(std::vector<float>& values, std::span<const float> more, float factor) {
  for (const float value : more) values.push_back(value * factor);
}

}  // namespace

ReplicaTables::ReplicaTables(const engine::Program& program, engine::Scope& scope, const TablePlan& plan,
                             ps::StepClient& client, ps::Mode mode, std::size_t replicas)
    : program_(program),
      scope_(scope),
      plan_(plan),
      client_(client),
      mode_(mode),
      trains_(has_backward(program)),
      joined_(plan.entries.size()) {
  for (const TablePlan::Entry& entry : plan.entries)
    by_example_.push_back(!entry.gradient.empty() && is_by_example(program, entry.gradient));
  for (std::size_t i = 0; i < replicas; ++i) {
    exchanges_.emplace_back(program, plan, &client, ExchangeOptions{.rows_only = true});
    rows_.push_back(&exchanges_.back());
  }
}

void ReplicaTables::begin_step() {
  if (!in_epoch_ && mode_ != ps::Mode::async) client_.begin_epoch(1);
  in_epoch_ = true;
  ps::Pull request;
  if (trains_) request.thread = 0;
  request.create = trains_;
  for (const TablePlan::Entry& entry : plan_.entries) {
    if (entry.table.kind != ps::TableConfig::Kind::dense) continue;
    Tensor& tensor = scope_.tensor(entry.parameter);
    tensor.resize(engine::DataType::float32, program_.variable(entry.parameter).shape);
    request.dense.push_back({entry.table.id, tensor.values<float>()});
  }
  if (!request.dense.empty()) client_.pull(request);
}

void ReplicaTables::pull(std::size_t replica, const Feed& feed) {
  exchanges_[replica].begin_pull(feed);
  exchanges_[replica].finish_pull();
}

void ReplicaTables::join(const Replicas& replicas, std::size_t active, float factor,
                         const TablePlan::Entry& entry, Joined& joined) const {
  joined.keys.clear();
  for (auto* values : {&joined.values, &joined.shows, &joined.clicks}) values->clear();
  for (std::size_t replica = 0; replica < active; ++replica) {
    const auto floats = [&](const std::string& name) {
      return replicas.tensor(replica, name).values<float>();
    };
    if (entry.keys.empty()) {
      add(joined.values, floats(entry.gradient), factor, replica == 0);
      continue;
    }
    append(joined.values, floats(entry.gradient), factor);
    std::ranges::copy(replicas.tensor(replica, entry.keys).values<std::int64_t>(),
                      std::back_inserter(joined.keys));
    if (entry.shows.empty()) continue;
    append(joined.shows, floats(entry.shows), 1.0f);
    append(joined.clicks, floats(entry.clicks), 1.0f);
  }
}

void ReplicaTables::push(const Replicas& replicas, std::size_t active, float factor) {
  if (!trains_) return;
  ps::Push request;
  for (std::size_t i = 0; i < plan_.entries.size(); ++i) {
    const TablePlan::Entry& entry = plan_.entries[i];
    if (entry.gradient.empty()) continue;
    Joined& joined = joined_[i];
    join(replicas, active, by_example_[i] ? factor * static_cast<float>(active) : factor, entry, joined);
    if (entry.keys.empty()) {
      request.dense.push_back({entry.table.id, joined.values});
    } else {
      request.sparse.push_back(
          {entry.table.id, joined.keys, joined.values, joined.shows, joined.clicks, entry.slot});
    }
  }
  client_.push(request);
}

void ReplicaTables::end_epoch() {
  if (!in_epoch_) return;
  in_epoch_ = false;
  client_.leave_epoch(0);
}

}  // namespace fleetrun::runtime
