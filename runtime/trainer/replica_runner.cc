#include "runtime/trainer/replica_runner.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "runtime/trainer/replica_tables.h"

namespace fleetrun::runtime {

using engine::Replicas;
using engine::Shape;
using engine::Tensor;

namespace {

/// Where the part of `index` begins when `count` things are shared out among `parts`.
std::size_t share_begin(std::size_t count, std::size_t parts, std::size_t index) {
  return index * (count / parts) + std::min(index, count % parts);
}

/// Rows [begin, end) of the first axis, without offsets.
Tensor rows_of(const Tensor& tensor, std::size_t begin, std::size_t end) {
  Shape shape = tensor.shape();
  const std::size_t rows = static_cast<std::size_t>(shape.at(0));
  const std::size_t row_bytes = rows == 0 ? 0 : tensor.bytes() / rows;
  shape[0] = static_cast<std::int64_t>(end - begin);
  Tensor part(tensor.type(), shape);
  if (part.bytes() > 0) {
    std::memcpy(part.data(), static_cast<const std::byte*>(tensor.data()) + begin * row_bytes, part.bytes());
  }
  return part;
}

}  // namespace

std::size_t example_count(const Tensor& tensor) {
  return tensor.offsets.empty() ? static_cast<std::size_t>(tensor.shape().at(0)) : tensor.offsets.size() - 1;
}

Tensor examples_of(const Tensor& tensor, std::size_t begin, std::size_t end) {
  if (tensor.offsets.empty()) return rows_of(tensor, begin, end);
  Tensor part = rows_of(tensor, tensor.offsets[begin], tensor.offsets[end]);
  for (std::size_t i = begin; i <= end; ++i)
    part.offsets.push_back(tensor.offsets[i] - tensor.offsets[begin]);
  return part;
}

struct ReplicaRunner::State {
  /// What a replica is fed, kept from step to step.
  struct Part {
    std::map<std::string, Tensor> tensors;
    Replicas::Feed feed;
  };

  std::vector<collective::Communicator*> communicators;
  engine::ReplicaOptions options;
  CollectiveOptions together;
  std::optional<ReplicaTables> tables;
  Replicas replicas;
  std::optional<RankMean> mean;
  std::optional<LocalSteps> local;
  std::vector<Part> parts;
  std::size_t active = 0;

  State(const engine::Program& program, engine::Scope& scope, const engine::ReplicaOptions& in_options)
      : options(in_options), replicas(program, scope, options), parts(options.replicas) {}
  State(const engine::Program& program, engine::Scope& scope, const engine::ReplicaOptions& in_options,
        const TablePlan& plan, ps::StepClient& client, ps::Mode mode)
      : options(in_options),
        tables(std::in_place, program, scope, plan, client, mode, options.replicas),
        replicas(program, scope, options, tables->rows()),
        parts(options.replicas) {}

  bool trains() const { return tables ? tables->trains() : !replicas.gradients().empty(); }

  void run(const Replicas::FeedSource& feeds) {
    if (tables) {
      run_with_tables(feeds);
    } else if (local) {
      local->begin();
      replicas.run(feeds);
      local->after_step(true, together.loss.empty() ? 0.0 : loss());
    } else if (mean) {
      replicas.run(feeds,
                   [this](std::size_t batches) { return mean->finish_sums(batches, replicas.size()); });
    } else {
      replicas.run(feeds);
    }
  }

  void run_with_tables(const Replicas::FeedSource& feeds) {
    tables->begin_step();
    replicas.run([&](std::size_t replica) {
      const Replicas::Feed* feed = feeds(replica);
      if (feed != nullptr) tables->pull(replica, *feed);
      return feed;
    });
    const bool is_mean = options.scale == engine::GradientScale::mean;
    tables->push(replicas, active, is_mean ? 1.0f / static_cast<float>(active) : 1.0f);
  }

  /// The mean over the replicas.
  double loss() const {
    double sum = 0.0;
    for (std::size_t replica = 0; replica < active; ++replica)
      sum += static_cast<double>(replicas.tensor(replica, together.loss).values<float>()[0]);
    return sum / static_cast<double>(active);
  }

  const Replicas::Feed* part_of(const Feed& feed, std::size_t replica) {
    Part& part = parts[replica];
    part.feed.clear();
    for (const auto& [name, tensor] : feed) {
      if (tensor->shape().empty()) {
        part.feed[name] = tensor;
        continue;
      }
      const std::size_t examples = example_count(*tensor);
      Tensor& own = part.tensors[name];
      own = examples_of(*tensor, share_begin(examples, active, replica),
                        share_begin(examples, active, replica + 1));
      part.feed[name] = &own;
    }
    return &part.feed;
  }
};

ReplicaRunner::ReplicaRunner(const engine::Program& program, engine::Scope& scope,
                             const engine::ReplicaOptions& replicas,
                             std::vector<collective::Communicator*> communicators,
                             const CollectiveOptions& options)
    : state_(std::make_unique<State>(program, scope, replicas)) {
  State& state = *state_;
  state.communicators = std::move(communicators);
  state.together = options;
  if (state.communicators.empty() || state.replicas.gradients().empty()) return;
  check_collective(program);
  if (options.local) {
    state.local.emplace(program, scope, *state.communicators.front(), *options.local);
    return;
  }
  if (replicas.scale != engine::GradientScale::mean) {
    throw Error(ErrorKind::config,
                "gradient_scale_strategy of several trainers: their gradients are averaged",
                "leave it at CoeffNumDevice");
  }
  state.mean.emplace(
      state.replicas.gradients(), state.communicators, options.mean,
      options.mean.compression ? momentums_of(program, scope) : std::map<std::string, Momentum>());
}

ReplicaRunner::ReplicaRunner(const engine::Program& program, engine::Scope& scope,
                             const engine::ReplicaOptions& replicas, const TablePlan& plan,
                             ps::StepClient& client, ps::Mode mode)
    : state_(std::make_unique<State>(program, scope, replicas, plan, client, mode)) {}

ReplicaRunner::~ReplicaRunner() = default;

void ReplicaRunner::run(const Feed& feed) {
  State& state = *state_;
  std::size_t min = state.replicas.size();
  for (const auto& [name, tensor] : feed) {
    if (!tensor->shape().empty()) min = std::min(min, example_count(*tensor));
  }
  state.active = std::max<std::size_t>(min, 1);
  state.run(
      [&](std::size_t replica) { return replica < state.active ? state.part_of(feed, replica) : nullptr; });
}

void ReplicaRunner::run(std::span<const Feed> feeds) {
  const std::size_t most = state_->replicas.size();
  // The last batches of an evaluation may be too few.
  const bool may_be_fewer = !feeds.empty() && !state_->trains();
  if (may_be_fewer ? feeds.size() > most : feeds.size() != most) {
    throw Error(
        ErrorKind::config,
        std::to_string(feeds.size()) + " feeds for " + std::to_string(state_->replicas.size()) + " replicas",
        "give each replica a feed, or all of them one, which is split");
  }
  state_->active = feeds.size();
  state_->run([&](std::size_t replica) { return replica < feeds.size() ? &feeds[replica] : nullptr; });
}

void ReplicaRunner::synchronize() {
  if (state_->local) state_->local->synchronize();
}

std::size_t ReplicaRunner::since_average() const noexcept {
  return state_->local ? state_->local->since_average() : 0;
}

void ReplicaRunner::end_epoch() {
  if (state_->tables) state_->tables->end_epoch();
}

std::size_t ReplicaRunner::size() const noexcept {
  return state_->replicas.size();
}

std::size_t ReplicaRunner::active() const noexcept {
  return state_->active;
}

const Tensor& ReplicaRunner::tensor(std::size_t replica, const std::string& name) const {
  return state_->replicas.tensor(replica, name);
}

Tensor ReplicaRunner::merged(const std::string& name) const {
  Shape shape = tensor(0, name).shape();
  if (shape.empty()) shape = {1};
  std::int64_t rows = 0;
  for (std::size_t replica = 0; replica < active(); ++replica) {
    Shape other = tensor(replica, name).shape();
    if (other.empty()) other = {1};
    rows += other[0];
    if (other.size() == shape.size() && std::equal(other.begin() + 1, other.end(), shape.begin() + 1))
      continue;
    throw Error(ErrorKind::config,
                "'" + name + "' is " + engine::to_string(shape) + " in replica 0 and " +
                    engine::to_string(other) + " in replica " + std::to_string(replica),
                "fetch it with return_merged=False");
  }
  shape[0] = rows;
  Tensor all(tensor(0, name).type(), shape);
  auto* place = static_cast<std::byte*>(all.data());
  std::size_t row = 0;
  for (std::size_t replica = 0; replica < active(); ++replica) {
    const Tensor& part = tensor(replica, name);
    if (part.bytes() > 0) std::memcpy(place, part.data(), part.bytes());
    place += part.bytes();
    for (std::size_t i = all.offsets.empty() ? 0 : 1; i < part.offsets.size(); ++i)
      all.offsets.push_back(row + part.offsets[i]);
    row += part.shape().empty() ? 1 : static_cast<std::size_t>(part.shape()[0]);
  }
  return all;
}

}  // namespace fleetrun::runtime
