// A step is three phases that all threads go through together, with a barrier after each. Thread t computes
// replicas t, t + threads, …, in this order, and acts for them as owners.
//
// A program is taken apart at its first update operator: what is before is an executor for each replica, the
// updates are one for each owner, whose gradients are the sums.

#include "runtime/engine/replicas/replicas.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <deque>
#include <exception>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/operators/vector_math.h"
#include "runtime/engine/passes/passes.h"
#include "runtime/engine/random.h"

namespace fleetrun::engine {

namespace {

/// The program without its updates, for one replica.
Program compute_part(const Program& program, std::size_t replica, const ReplicaOptions& options) {
  Program part = program;
  std::erase_if(part.operators(), is_update);
  if (program.random_seed != 0 && replica > 0) {
    part.random_seed = stream_seed(program.random_seed, "replica " + std::to_string(replica));
  }
  const auto seed = std::ranges::find_if(part.operators(), [](const Operator& op) {
    return op.type == "fill_constant" && has_role(op, "backward");
  });
  if (options.scale == GradientScale::customized && seed != part.operators().end()) {
    part.variable(seed->outputs.at(0)).is_data = true;
    part.operators().erase(seed);
  }
  if (!options.kept) return part;
  Kept kept = *options.kept;
  for (const StepGradient& gradient : gradients_of(program)) kept.insert({gradient.name, gradient.keys_name});
  return optimize(part, kept, options.passes_off);
}

/// Throws: Error(config) when an operator of the first part would have to run after the updates.
void check_order(const Program& program) {
  std::set<std::string> updated;
  for (const Operator& op : program.operators()) {
    if (is_update(op)) {
      updated.insert(op.outputs.begin(), op.outputs.end());
      continue;
    }
    for (const std::string& input : op.inputs) {
      if (!updated.contains(input)) continue;
      throw Error(ErrorKind::config, "operator " + op.type + " reads " + input + " after its update",
                  "replicas run all updates at the end: call minimize() last");
    }
  }
}

/// Variables that operators of the first part keep from step to step: replicas touch them in turn.
class Turns {
 public:
  Turns(const Program& part, std::size_t replicas) : replicas_(replicas) {
    std::map<std::string, std::pair<std::size_t, std::size_t>> spans;
    std::set<std::string> kept;
    for (const Operator& op : part.operators()) {
      for (const std::string& output : op.outputs) {
        if (!output.empty() && part.variable(output).persistable) kept.insert(output);
      }
    }
    for (std::size_t i = 0; i < part.operators().size(); ++i) {
      const Operator& op = part.operators()[i];
      for (const auto* names : {&op.inputs, &op.outputs}) {
        for (const std::string& name : *names) {
          if (kept.contains(name)) spans.emplace(name, std::pair(i, i)).first->second.second = i;
        }
      }
    }
    for (const auto& [name, span] : spans) sections_.emplace_back(span.first, span.second);
  }

  /// After all replicas' end().
  void end_step() noexcept { base_ += replicas_; }
  /// Before the operator of this index of a replica.
  void before(std::size_t replica, std::size_t index) noexcept {
    for (Section& section : sections_) {
      if (index == section.first) wait(section, replica);
      if (index == section.last + 1) pass(section, replica);
    }
  }
  /// After the last operator of a replica, or instead of it.
  void end(std::size_t replica) noexcept {
    for (Section& section : sections_) {
      if (section.next.load() > base_ + replica) continue;
      wait(section, replica);
      pass(section, replica);
    }
  }

 private:
  struct Section {
    Section(std::size_t in_first, std::size_t in_last) : first(in_first), last(in_last) {}
    std::size_t first, last;
    /// Step and replica whose turn it is, as one number.
    std::atomic<std::uint64_t> next = 0;
  };

  void wait(Section& section, std::size_t replica) const noexcept {
    for (auto now = section.next.load(); now < base_ + replica; now = section.next.load())
      section.next.wait(now);
  }
  void pass(Section& section, std::size_t replica) const noexcept {
    section.next.store(base_ + replica + 1);
    section.next.notify_all();
  }

  std::size_t replicas_;
  std::uint64_t base_ = 0;
  std::deque<Section> sections_;
};

/// Part of a dense gradient.
struct Slice {
  std::size_t gradient, begin, end;
};

/// Threads that go through phases together; the caller is thread 0.
class Team {
 public:
  explicit Team(std::size_t threads) : errors_(threads), barrier_(static_cast<std::ptrdiff_t>(threads)) {
    for (std::size_t t = 1; t < threads; ++t) {
      threads_.emplace_back([this, t] {
        for (;;) {
          barrier_.arrive_and_wait();
          if (stopped_) return;
          work(t);
        }
      });
    }
  }
  ~Team() {
    stopped_ = true;
    barrier_.arrive_and_wait();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  using Phase = std::function<void(std::size_t thread)>;
  /// Runs the phases; those after one that failed are left out.
  /// Throws: the error of the first thread that has one.
  void run(std::span<const Phase> phases) {
    phases_ = phases;
    std::ranges::fill(errors_, nullptr);
    failed_in_ = phases.size();
    barrier_.arrive_and_wait();
    work(0);
    for (const std::exception_ptr& error : errors_) {
      if (error) std::rethrow_exception(error);
    }
  }

 private:
  void work(std::size_t thread) noexcept {
    // A copy: behind the last barrier the caller may have begun the next run.
    const std::span<const Phase> phases = phases_;
    for (std::size_t i = 0; i < phases.size(); ++i) {
      if (i <= failed_in_) {
        try {
          phases[i](thread);
        } catch (...) {
          errors_[thread] = std::current_exception();
          failed_in_ = i;
        }
      }
      barrier_.arrive_and_wait();
    }
  }

  std::span<const Phase> phases_;
  std::vector<std::exception_ptr> errors_;
  std::atomic<std::size_t> failed_in_ = 0;
  bool stopped_ = false;
  std::barrier<> barrier_;
  std::vector<std::jthread> threads_;
};

}  // namespace

struct Replicas::State {
  /// A gradient in every replica.
  struct Parts {
    std::vector<const Tensor*> values, keys;
    Shape values_shape, keys_shape;  // of joined rows
  };

  ReplicaOptions options;
  std::vector<std::unique_ptr<Executor>> computes;  // by replica
  std::vector<std::unique_ptr<Executor>> updates;   // by owner
  Turns turns;
  std::vector<StepGradient> gradients;
  std::vector<Parts> parts;  // by gradient
  std::vector<std::size_t> owners;
  std::vector<std::vector<Slice>> slices;  // by thread
  std::vector<Team::Phase> phases, phases_of_exchange;
  // Of the step:
  const FeedSource* feeds = nullptr;
  const Exchange* exchange = nullptr;
  const ReplicaObserver* observer = nullptr;
  std::vector<std::uint8_t> has_batch;  // by replica
  bool may_update = false;
  // Last: its threads end first.
  Team team;

  State(const Program& program, Scope& scope, const ReplicaOptions& in_options,
        std::span<RowSource* const> rows);
  void find_gradients(const Program& program);
  void make_updates(const Program& program, Scope& scope);
  void slice();
  void make_phases();

  std::size_t threads() const noexcept { return options.threads; }
  std::size_t batches() const noexcept {
    return std::accumulate(has_batch.begin(), has_batch.end(), std::size_t{0});
  }
  void compute(std::size_t thread);
  void compute_replica(std::size_t replica);
  Executor::Observer observer_of(std::size_t replica, const Executor& executor) const;
  void sum(std::size_t thread);
  void sum_slice(const Slice& slice, float divisor);
  void join_rows(std::size_t gradient, float divisor);
  void update(std::size_t thread);
};

namespace {

void add(const float* from, float* to, std::size_t size) {
  vectorized([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < size; ++i) to[i] += from[i];
  });
}

/// `to` may be `from`.
void divide(const float* from, float divisor, float* to, std::size_t size) {
  vectorized([=]() __attribute__((always_inline)) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i] / divisor;
  });
}

ReplicaOptions checked(ReplicaOptions options) {
  if (options.replicas == 0)
    throw Error(ErrorKind::config, "0 replicas of a program", "set CPU_NUM to 1 or more");
  if (options.threads == 0 || options.threads > options.replicas) options.threads = options.replicas;
  return options;
}

}  // namespace

Replicas::State::State(const Program& program, Scope& scope, const ReplicaOptions& in_options,
                       std::span<RowSource* const> rows)
    : options(checked(in_options)),
      turns(compute_part(program, 0, options), options.replicas),
      slices(options.threads),
      has_batch(options.replicas),
      team(options.threads) {
  check_order(program);
  check_values_are_made(program);
  for (std::size_t replica = 0; replica < options.replicas; ++replica) {
    computes.push_back(std::make_unique<Executor>(compute_part(program, replica, options), scope,
                                                  rows.empty() ? nullptr : rows[replica]));
  }
  find_gradients(program);
  make_updates(program, scope);
  slice();
  make_phases();
}

void Replicas::State::find_gradients(const Program& program) {
  gradients = gradients_of(program);
  std::vector<std::size_t> sizes;
  for (const StepGradient& gradient : gradients) {
    sizes.push_back(gradient.count);
    Parts& part = parts.emplace_back();
    part.values_shape = {0, program.variable(gradient.name).shape.back()};
    part.keys_shape = {0};
    for (const auto& executor : computes) {
      part.values.push_back(&executor->tensor(gradient.name));
      if (!gradient.keys_name.empty()) part.keys.push_back(&executor->tensor(gradient.keys_name));
    }
  }
  // What clips the sums makes values that several updates read.
  const bool clips = std::ranges::any_of(program.operators(), [&program](const Operator& op) {
    return is_update(op) && !program.variable(op.outputs.at(0)).persistable;
  });
  owners = clips ? std::vector<std::size_t>(sizes.size(), 0) : owners_of(sizes, options.replicas);
}

void Replicas::State::make_updates(const Program& program, Scope& scope) {
  const auto owner_of = [this](const Operator& op) {
    for (std::size_t g = 0; g < gradients.size(); ++g) {
      if (std::ranges::find(op.inputs, gradients[g].name) != op.inputs.end()) return owners[g];
    }
    return std::size_t{0};
  };
  updates.resize(options.replicas);
  for (std::size_t owner = 0; owner < options.replicas; ++owner) {
    Program part = program;
    std::erase_if(part.operators(),
                  [&](const Operator& op) { return !is_update(op) || owner_of(op) != owner; });
    if (!part.operators().empty()) updates[owner] = std::make_unique<Executor>(part, scope);
  }
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    StepGradient& gradient = gradients[g];
    Executor& executor = *updates[owners[g]];
    gradient.values = &executor.tensor(gradient.name);
    if (!gradient.keys_name.empty()) {
      gradient.keys = &executor.tensor(gradient.keys_name);
    } else {
      gradient.values->resize(DataType::float32, program.variable(gradient.parameter).shape);
    }
  }
}

/// Which part of which sum each thread makes.
void Replicas::State::slice() {
  std::size_t all = 0;
  for (const StepGradient& gradient : gradients)
    all += gradient.keys == nullptr ? gradient.values->size() : 0;
  std::size_t start = 0;
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    const std::size_t size = gradients[g].values->size();
    if (gradients[g].keys != nullptr) continue;
    if (options.reduce == ReduceStrategy::reduce) {
      slices[owners[g] % threads()].push_back({g, 0, size});
      continue;
    }
    for (std::size_t t = 0; t < threads(); ++t) {
      const std::size_t begin = std::clamp(all * t / threads(), start, start + size);
      const std::size_t end = std::clamp(all * (t + 1) / threads(), start, start + size);
      if (begin < end) slices[t].push_back({g, begin - start, end - start});
    }
    start += size;
  }
}

void Replicas::State::make_phases() {
  const Team::Phase computing = [this](std::size_t thread) { compute(thread); };
  const Team::Phase summing = [this](std::size_t thread) { sum(thread); };
  const Team::Phase updating = [this](std::size_t thread) { update(thread); };
  const Team::Phase exchanging = [this](std::size_t thread) {
    if (thread == 0) may_update = (*exchange)(batches());
  };
  phases_of_exchange = {computing, summing, exchanging, updating};
  if (gradients.empty()) {
    phases = {computing};
  } else if (options.reduce == ReduceStrategy::reduce) {
    // What an owner updates it has added up itself.
    phases = {computing, [this](std::size_t thread) {
                sum(thread);
                update(thread);
              }};
  } else {
    phases = {computing, summing, updating};
  }
}

void Replicas::State::compute(std::size_t thread) {
  std::exception_ptr error;
  for (std::size_t replica = thread; replica < options.replicas; replica += threads()) {
    if (!error) {
      try {
        compute_replica(replica);
      } catch (...) {
        error = std::current_exception();
      }
    }
    turns.end(replica);
  }
  if (error) std::rethrow_exception(error);
}

void Replicas::State::compute_replica(std::size_t replica) {
  has_batch[replica] = 0;
  const Feed* feed = (*feeds)(replica);
  if (feed == nullptr) return;
  computes[replica]->run_with(
      *feed, [this, replica](std::size_t index) { turns.before(replica, index); },
      observer_of(replica, *computes[replica]));
  has_batch[replica] = 1;
  if (observer->computed) observer->computed(replica);
}

Executor::Observer Replicas::State::observer_of(std::size_t replica, const Executor& executor) const {
  if (!observer->ran) return {};
  return [this, replica, &executor](const Operator& op, double seconds) {
    observer->ran(replica, executor, op, seconds);
  };
}

void Replicas::State::sum(std::size_t thread) {
  const std::size_t count = batches();
  const bool divides = options.scale == GradientScale::mean && exchange == nullptr;
  const float divisor = divides ? static_cast<float>(std::max<std::size_t>(count, 1)) : 1.0f;
  for (const Slice& slice : slices[thread]) sum_slice(slice, divisor);
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    if (gradients[g].keys != nullptr && owners[g] % threads() == thread) join_rows(g, divisor);
  }
}

void Replicas::State::sum_slice(const Slice& slice, float divisor) {
  constexpr std::size_t kChunk = 4096;  // stays in the first cache
  float* const out = static_cast<float*>(gradients[slice.gradient].values->data());
  for (std::size_t begin = slice.begin; begin < slice.end; begin += kChunk) {
    const std::size_t end = std::min(begin + kChunk, slice.end);
    bool first = true;
    for (std::size_t replica = 0; replica < options.replicas; ++replica) {
      if (has_batch[replica] == 0) continue;
      const auto* part = static_cast<const float*>(parts[slice.gradient].values[replica]->data());
      if (std::exchange(first, false)) {
        std::copy(part + begin, part + end, out + begin);
      } else {
        add(part + begin, out + begin, end - begin);
      }
    }
    if (first) std::fill(out + begin, out + end, 0.0f);
    if (divisor != 1.0f) divide(out + begin, divisor, out + begin, end - begin);
  }
}

void Replicas::State::join_rows(std::size_t gradient, float divisor) {
  Parts& part = parts[gradient];
  const StepGradient& out = gradients[gradient];
  std::int64_t rows = 0;
  for (std::size_t replica = 0; replica < options.replicas; ++replica) {
    if (has_batch[replica] != 0) rows += part.keys[replica]->shape().at(0);
  }
  part.values_shape[0] = part.keys_shape[0] = rows;
  out.values->resize(DataType::float32, part.values_shape);
  out.keys->resize(DataType::int64, part.keys_shape);
  float* values = static_cast<float*>(out.values->data());
  auto* keys = static_cast<std::int64_t*>(out.keys->data());
  for (std::size_t replica = 0; replica < options.replicas; ++replica) {
    if (has_batch[replica] == 0) continue;
    const auto given = part.values[replica]->values<float>();
    divide(given.data(), divisor, values, given.size());
    values += given.size();
    keys = std::ranges::copy(part.keys[replica]->values<std::int64_t>(), keys).out;
  }
}

void Replicas::State::update(std::size_t thread) {
  if (exchange == nullptr ? batches() == 0 : !may_update) return;
  for (std::size_t owner = thread; owner < updates.size(); owner += threads()) {
    if (!updates[owner]) continue;
    if (const auto observed = observer_of(owner, *updates[owner]))
      updates[owner]->run({}, observed);
    else
      updates[owner]->run({});
  }
}

std::vector<std::size_t> owners_of(std::span<const std::size_t> sizes, std::size_t replicas) {
  std::vector<std::size_t> owned(replicas, 0), owners;
  for (const std::size_t size : sizes) {
    const auto min = std::ranges::min_element(owned);
    *min += size;
    owners.push_back(static_cast<std::size_t>(min - owned.begin()));
  }
  return owners;
}

Replicas::Replicas(const Program& program, Scope& scope, const ReplicaOptions& options,
                   std::span<RowSource* const> rows)
    : state_(std::make_unique<State>(program, scope, options, rows)) {}

Replicas::~Replicas() = default;

std::size_t Replicas::size() const noexcept {
  return state_->options.replicas;
}

std::size_t Replicas::run(const FeedSource& feeds, const Exchange& exchange,
                          const ReplicaObserver& observer) {
  state_->feeds = &feeds;
  state_->observer = &observer;
  state_->exchange = exchange ? &exchange : nullptr;
  std::ranges::fill(state_->has_batch, std::uint8_t{0});
  const struct StepEnd {
    Turns& turns;
    ~StepEnd() { turns.end_step(); }
  } end{state_->turns};
  state_->team.run(exchange ? state_->phases_of_exchange : state_->phases);
  return state_->batches();
}

const Tensor& Replicas::tensor(std::size_t replica, const std::string& name) const {
  return state_->computes.at(replica)->tensor(name);
}

std::span<const StepGradient> Replicas::gradients() const noexcept {
  return state_->gradients;
}

}  // namespace fleetrun::engine
