#include "runtime/collective_pass.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/batch_feed.h"
#include "runtime/engine/replicas.h"
#include "runtime/pass_fetches.h"

namespace fleetrun::runtime {

using collective::Communicator;
using engine::Program;
using engine::Replicas;
using engine::Scope;

namespace {

/// The dataset's readers, started and stopped.
class Reading {
 public:
  explicit Reading(dataset::BatchSource& dataset) : dataset_(dataset) { dataset_.start(true); }
  ~Reading() { dataset_.stop(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  dataset::BatchSource& dataset_;
};

/// What a thread reads and has fetched.
struct Reader {
  Reader(const std::vector<BatchInput>& inputs, const PassOptions& options, bool prints)
      : batch(inputs), fetches(options, prints, 0) {}

  BatchFeed batch;
  PassFetches fetches;
  bool has_ended = false;

  /// The next batch; null after the last one. After an error the other readers stop.
  const Replicas::Feed* next(dataset::BatchSource& dataset, std::size_t reader) {
    if (has_ended) return nullptr;
    try {
      has_ended = !dataset.next(reader, batch.batch());
      if (!has_ended) batch.fill();
    } catch (...) {
      dataset.stop();
      throw;
    }
    return has_ended ? nullptr : &batch.feed();
  }
};

}  // namespace

struct CollectivePass::State {
  const Program& program;
  Scope& scope;
  std::vector<Communicator*> communicators;
  CollectiveOptions options;
  std::optional<LocalSteps> local;
  std::optional<Replicas> replicas;
  std::optional<RankMean> mean;
  /// What replicas let be read.
  std::set<std::string> kept;
  /// Of all ranks, the most readers that one has.
  std::size_t most_readers = 0;

  PassResult run(dataset::BatchSource& dataset, const std::vector<BatchInput>& inputs,
                 const PassOptions& options);
  void give_up(const Error& error) noexcept;
  void prepare(std::size_t readers, const PassOptions& options);
  bool step(dataset::BatchSource& dataset, std::deque<Reader>& readers);
  double loss() const;
};

PassResult CollectivePass::State::run(dataset::BatchSource& dataset, const std::vector<BatchInput>& inputs,
                                      const PassOptions& pass_options) {
  const auto start = std::chrono::steady_clock::now();
  prepare(dataset.readers(), pass_options);
  std::deque<Reader> readers;
  for (std::size_t r = 0; r < dataset.readers(); ++r) readers.emplace_back(inputs, pass_options, r == 0);
  while (step(dataset, readers)) {
    for (std::size_t r = 0; r < readers.size(); ++r) {
      if (readers[r].has_ended) continue;
      readers[r].fetches.account(
          readers[r].batch.rows(),
          [&](const std::string& name) -> const engine::Tensor& { return replicas->tensor(r, name); });
    }
  }
  PassResult result;
  for (const Reader& reader : readers) add_to(result, reader.fetches);
  finish_means(result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

/// The other ranks must not wait for this one's next step.
void CollectivePass::State::give_up(const Error& error) noexcept {
  for (Communicator* communicator : communicators) communicator->abort(error);
}

void CollectivePass::State::prepare(std::size_t readers, const PassOptions& pass_options) {
  auto most = static_cast<std::int64_t>(readers);
  collective::all_reduce(*communicators.front(), {&most, 1, collective::DataType::int64},
                         collective::Operation::max);
  most_readers = static_cast<std::size_t>(most);
  if (local) local->begin();
  const bool can_read =
      std::ranges::all_of(pass_options.fetch, [&](const std::string& name) { return kept.contains(name); });
  if (replicas && replicas->size() == readers && can_read) return;
  kept.insert(pass_options.fetch.begin(), pass_options.fetch.end());
  if (!options.loss.empty()) kept.insert(options.loss);
  mean.reset();
  replicas.emplace(
      program, scope,
      engine::ReplicaOptions{.replicas = readers, .kept = kept, .passes_off = pass_options.passes_off});
  if (local) return;
  mean.emplace(replicas->gradients(), communicators, options.mean,
               options.mean.compression ? momentums_of(program, scope) : std::map<std::string, Momentum>());
}

/// false: no rank had a batch.
bool CollectivePass::State::step(dataset::BatchSource& dataset, std::deque<Reader>& readers) {
  const auto next = [&](std::size_t reader) { return readers[reader].next(dataset, reader); };
  if (local) {
    const bool has_trained = replicas->run(next) > 0;
    return local->after_step(has_trained, has_trained && !options.loss.empty() ? loss() : 0.0);
  }
  bool more = false;
  replicas->run(next, [&](std::size_t batches) {
    more = mean->finish_sums(batches, most_readers);
    return more;
  });
  return more;
}

double CollectivePass::State::loss() const {
  return static_cast<double>(replicas->tensor(0, options.loss).values<float>()[0]);
}

CollectivePass::CollectivePass(const Program& program, Scope& scope, std::vector<Communicator*> communicators,
                               const CollectiveOptions& options)
    : state_(new State{program, scope, std::move(communicators), options, {}, {}, {}, {}}) {
  check_collective(program);
  if (options.mean.compression) static_cast<void>(momentums_of(program, scope));
  if (options.local) state_->local.emplace(program, scope, *state_->communicators.front(), *options.local);
}

CollectivePass::~CollectivePass() = default;

PassResult CollectivePass::run(dataset::BatchSource& dataset, const PassOptions& options) {
  for (const std::string& name : options.fetch) static_cast<void>(state_->program.variable(name));
  const std::vector<BatchInput> inputs = inputs_of(state_->program, dataset.slots());
  const Reading reading(dataset);
  try {
    return state_->run(dataset, inputs, options);
  } catch (const Error& error) {
    state_->give_up(error);
    throw;
  }
}

}  // namespace fleetrun::runtime
