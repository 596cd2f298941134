#include "runtime/trainer/collective_epoch.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/engine/replicas/replicas.h"
#include "runtime/trainer/batch_feed.h"
#include "runtime/trainer/dataset_readers.h"
#include "runtime/trainer/epoch_fetches.h"

namespace fleetrun::runtime {

using collective::Communicator;
using engine::Program;
using engine::Replicas;
using engine::Scope;

namespace {

using Clock = EpochProfile::Clock;

/// What a thread reads, has fetched and measures.
struct Reader {
  Reader(const std::vector<BatchInput>& inputs, const EpochOptions& options, std::size_t number)
      : batch(inputs),
        fetches(options, number == 0, 0),
        profile(options.time_operators, Track(options.timeline, "thread " + std::to_string(number))) {}

  BatchFeed batch;
  EpochFetches fetches;
  EpochProfile profile;
  bool has_ended = false;
  /// Its last stage's end.
  Clock::time_point since = Clock::now();

  /// A stage that lasts from the end of the one before until `end`.
  void ended(Stage stage, Clock::time_point end) {
    profile.add(stage, since, end);
    since = end;
  }

  /// The next batch; null after the last one. After an error the other readers stop.
  const Replicas::Feed* next(dataset::BatchSource& dataset, std::size_t reader) {
    since = Clock::now();
    if (has_ended) return nullptr;
    try {
      has_ended = !dataset.next(reader, batch.batch());
      if (!has_ended) batch.fill();
      ended(Stage::read, Clock::now());
    } catch (...) {
      dataset.stop();
      throw;
    }
    return has_ended ? nullptr : &batch.feed();
  }
};

/// Measures each replica in its reader's profile, and looks for NaN where that is asked for.
engine::ReplicaObserver observer_of(std::deque<Reader>& readers, const EpochOptions& options) {
  engine::ReplicaObserver observer;
  observer.computed = [&readers](std::size_t replica) {
    readers[replica].ended(Stage::compute, Clock::now());
  };
  if (!options.check_nan && !readers.front().profile.wants_operators()) return observer;
  observer.ran = [&readers, checks = options.check_nan](std::size_t replica, const engine::Executor& executor,
                                                        const engine::Operator& op, double seconds) {
    Reader& reader = readers[replica];
    if (reader.profile.wants_operators()) reader.profile.ran(op, seconds);
    if (!checks) return;
    executor.expect_finite(op, [&reader, replica] {
      return "batch " + std::to_string(reader.fetches.batches() + 1) + " of thread " +
             std::to_string(replica);
    });
  };
  return observer;
}

}  // namespace

struct CollectiveEpoch::State {
  const Program& program;
  Scope& scope;
  std::vector<Communicator*> communicators;
  CollectiveOptions options;
  std::optional<LocalSteps> local;
  std::optional<Replicas> replicas;
  std::optional<RankMean> mean;
  /// What replicas let be read.
  std::set<std::string> kept;
  /// Whether replicas run the program as it is, for who looks at every value.
  bool is_plain = false;
  /// Of all ranks, the most readers that one has.
  std::size_t max_readers = 0;

  EpochResult run(dataset::BatchSource& dataset, const std::vector<BatchInput>& inputs,
                  const EpochOptions& options);
  void give_up(const Error& error) noexcept;
  void prepare(std::size_t readers, const EpochOptions& options);
  bool step(dataset::BatchSource& dataset, std::deque<Reader>& readers,
            const engine::ReplicaObserver& observer);
  bool local_step(const Replicas::FeedSource& next, std::deque<Reader>& readers,
                  const engine::ReplicaObserver& observer);
  double loss() const;
};

EpochResult CollectiveEpoch::State::run(dataset::BatchSource& dataset, const std::vector<BatchInput>& inputs,
                                        const EpochOptions& epoch_options) {
  const auto start = std::chrono::steady_clock::now();
  prepare(dataset.readers(), epoch_options);
  std::deque<Reader> readers;
  for (std::size_t r = 0; r < dataset.readers(); ++r) readers.emplace_back(inputs, epoch_options, r);
  const engine::ReplicaObserver observer = observer_of(readers, epoch_options);
  while (step(dataset, readers, observer)) {
    for (std::size_t r = 0; r < readers.size(); ++r) {
      readers[r].profile.track().flush();
      if (readers[r].has_ended) continue;
      readers[r].fetches.account(
          readers[r].batch.rows(),
          [&](const std::string& name) -> const engine::Tensor& { return replicas->tensor(r, name); });
    }
  }
  EpochResult result;
  for (Reader& reader : readers) {
    reader.fetches.end();
    add_to(result, reader.fetches);
    add_to(result, reader.profile);
  }
  finish_means(result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

/// The other ranks must not wait for this one's next step.
void CollectiveEpoch::State::give_up(const Error& error) noexcept {
  for (Communicator* communicator : communicators) communicator->abort(error);
}

void CollectiveEpoch::State::prepare(std::size_t readers, const EpochOptions& epoch_options) {
  auto max = static_cast<std::int64_t>(readers);
  collective::all_reduce(*communicators.front(), {&max, 1, collective::DataType::int64},
                         collective::Operation::max);
  max_readers = static_cast<std::size_t>(max);
  if (local) local->begin();
  const bool can_read =
      std::ranges::all_of(epoch_options.fetch, [&](const std::string& name) { return kept.contains(name); });
  if (replicas && replicas->size() == readers && can_read && is_plain == epoch_options.check_nan) return;
  is_plain = epoch_options.check_nan;
  kept.insert(epoch_options.fetch.begin(), epoch_options.fetch.end());
  if (!options.loss.empty()) kept.insert(options.loss);
  mean.reset();
  engine::ReplicaOptions wanted{.replicas = readers, .passes_off = epoch_options.passes_off};
  if (!is_plain) wanted.kept = kept;
  replicas.emplace(program, scope, wanted);
  if (local) return;
  mean.emplace(replicas->gradients(), communicators, options.mean,
               options.mean.compression ? momentums_of(program, scope) : std::map<std::string, Momentum>());
}

/// false: no rank had a batch.
bool CollectiveEpoch::State::step(dataset::BatchSource& dataset, std::deque<Reader>& readers,
                                  const engine::ReplicaObserver& observer) {
  const auto next = [&](std::size_t reader) { return readers[reader].next(dataset, reader); };
  if (local) return local_step(next, readers, observer);
  bool more = false;
  Clock::time_point begun, averaged;
  const auto average = [&](std::size_t batches) {
    begun = Clock::now();
    more = mean->finish_sums(batches, max_readers);
    averaged = Clock::now();
    return more;
  };
  replicas->run(next, average, observer);
  for (Reader& reader : readers) {
    reader.profile.track().add("wait", "wait", reader.since, begun);
    reader.profile.track().add("average", "exchange", begun, averaged);
    reader.ended(Stage::exchange, averaged);
    reader.ended(Stage::compute, Clock::now());
  }
  return more;
}

bool CollectiveEpoch::State::local_step(const Replicas::FeedSource& next, std::deque<Reader>& readers,
                                        const engine::ReplicaObserver& observer) {
  const bool has_trained = replicas->run(next, {}, observer) > 0;
  for (Reader& reader : readers) reader.ended(Stage::compute, Clock::now());
  const bool more = local->after_step(has_trained, has_trained && !options.loss.empty() ? loss() : 0.0);
  for (Reader& reader : readers) reader.ended(Stage::exchange, Clock::now());
  return more;
}

double CollectiveEpoch::State::loss() const {
  return static_cast<double>(replicas->tensor(0, options.loss).values<float>()[0]);
}

CollectiveEpoch::CollectiveEpoch(const Program& program, Scope& scope,
                                 std::vector<Communicator*> communicators, const CollectiveOptions& options)
    : state_(new State{program, scope, std::move(communicators), options, {}, {}, {}, {}}) {
  check_collective(program);
  if (options.mean.compression) static_cast<void>(momentums_of(program, scope));
  if (options.local) state_->local.emplace(program, scope, *state_->communicators.front(), *options.local);
}

CollectiveEpoch::~CollectiveEpoch() = default;

EpochResult CollectiveEpoch::run(dataset::BatchSource& dataset, const EpochOptions& options) {
  for (const std::string& name : options.fetch) static_cast<void>(state_->program.variable(name));
  const std::vector<BatchInput> inputs = inputs_of(state_->program, dataset.slots());
  EpochResult result;
  try {
    const DatasetReaders reading(dataset, true, options.timeline);
    result = state_->run(dataset, inputs, options);
  } catch (const Error& error) {
    state_->give_up(error);
    throw;
  }
  if (options.timeline) options.timeline->close();
  return result;
}

}  // namespace fleetrun::runtime
