// One trainer thread per reader, each with its own executor and exchange; the caller's thread waits, and
// stops the dataset when a thread fails, so that threads that wait for a slow pipe end too.
//
// async mode on servers: while batch n computes, the push of batch n-1 and then the pull for batch n+1 are
// under way. all other modes and one process: a pull follows the push before it,
// and nothing runs ahead but the reader.

#include "runtime/trainer/dataset_trainer.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "dataset/base/fingerprint.h"
#include "runtime/base/error.h"
#include "runtime/engine/failed_step.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/passes/passes.h"
#include "runtime/log/log.h"
#include "runtime/trainer/batch_feed.h"
#include "runtime/trainer/dataset_readers.h"
#include "runtime/trainer/epoch_fetches.h"
#include "runtime/trainer/parameter_exchange.h"

namespace fleetrun::runtime {

namespace {

using engine::Tensor;

/// Goes over the batches of a reader that the process before this one has trained.
void skip(dataset::BatchSource& dataset, std::size_t reader, std::uint64_t batches) {
  dataset::Batch batch;
  for (std::uint64_t skipped = 0; skipped < batches; ++skipped) {
    if (dataset.next(reader, batch)) continue;
    throw Error(ErrorKind::data,
                "thread " + std::to_string(reader) + " had trained " + std::to_string(batches) +
                    " batches of this pass before its trainer was started again, and now finds " +
                    std::to_string(skipped),
                "each trainer must read the same files in the same order after a restart");
  }
}

/// What threads tell each other and the caller.
class Latch {
 public:
  explicit Latch(std::size_t threads) : running_(threads) {}

  void failed(std::exception_ptr error) noexcept {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }
  void ended() noexcept {
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }
  bool has_failed() const {
    const std::lock_guard lock(mutex_);
    return error_ != nullptr;
  }
  /// Returns when all threads have ended, or one has failed.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return running_ == 0 || error_; });
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t running_;
  std::exception_ptr error_;
};

struct Epoch {
  const engine::Program& asked;    // before passes
  const engine::Program& program;  // as it is run
  engine::Scope& scope;
  dataset::BatchSource& dataset;
  const TablePlan& plan;
  ps::StepClient* client;
  const EpochOptions& options;
  std::vector<BatchInput> inputs;
  EpochProfile::Clock::time_point start = EpochProfile::Clock::now();

  std::uint32_t pull_dense_every() const {
    const bool may_wait = options.mode == ps::Mode::async || options.mode == ps::Mode::half_async;
    return may_wait && options.train ? std::max(options.pull_dense_every, 1u) : 1;
  }
  bool counts_staleness() const {
    return client != nullptr && options.train && options.mode != ps::Mode::sync &&
           plan.placement == Placement::server;
  }
  bool runs_ahead() const { return options.mode == ps::Mode::async && plan.placement == Placement::server; }
};

class TrainerThread {
 public:
  /// The first `skipped` batches were trained before.
  TrainerThread(const Epoch& epoch, std::uint32_t thread, std::uint64_t skipped)
      : epoch_(epoch),
        thread_(thread),
        skipped_(skipped),
        profile_(epoch.options.time_operators,
                 Track(epoch.options.timeline, "thread " + std::to_string(thread))),
        exchange_(epoch.program, epoch.plan, epoch.client,
                  {.thread = thread,
                   .train = epoch.options.train,
                   .runs_ahead = epoch.runs_ahead(),
                   .pull_dense_every = epoch.pull_dense_every(),
                   .track = &profile_.track()}),
        executor_(epoch.program, epoch.scope, epoch.plan.entries.empty() ? nullptr : &exchange_,
                  exchange_.dense_parameters()),
        keeper_(epoch.asked, epoch.plan.entries.empty() ? nullptr : &exchange_, executor_),
        fetches_(epoch.options, thread == 0, skipped) {
    exchange_.attach(executor_);
    if (epoch.options.check_nan) keeper_.expect_finite();
  }

  void run(const Latch& latch);

  const EpochFetches& fetches() const noexcept { return fetches_; }
  const EpochProfile& profile() const noexcept { return profile_; }

 private:
  bool next_batch(BatchFeed& feed) {
    {
      const Span span(&profile_.track(), "next batch", "read");
      if (!epoch_.dataset.next(thread_, feed.batch())) return false;
    }
    feed.fill();
    return true;
  }
  /// The next batch; false after the last one.
  bool read(BatchFeed& feed) {
    return profile_.timed(Stage::read, [&] { return next_batch(feed); });
  }
  void begin_pull(const BatchFeed& feed) {
    profile_.timed(Stage::pull, [&] { exchange_.begin_pull(feed.feed()); });
  }
  void compute(const BatchFeed& feed, const std::function<std::string()>& which);

  const Epoch& epoch_;
  std::uint32_t thread_;
  std::uint64_t skipped_;
  EpochProfile profile_;
  ParameterExchange exchange_;
  engine::Executor executor_;
  engine::StepKeeper keeper_;
  EpochFetches fetches_;
};

void TrainerThread::run(const Latch& latch) {
  BatchFeed first(epoch_.inputs), second(epoch_.inputs);
  BatchFeed* now_fed = &first;
  BatchFeed* next_fed = &second;
  const bool ahead = epoch_.runs_ahead();
  skip(epoch_.dataset, thread_, skipped_);
  bool more = read(*now_fed);
  if (more && ahead) begin_pull(*now_fed);
  while (more && !latch.has_failed()) {
    if (!ahead) begin_pull(*now_fed);
    profile_.timed(Stage::pull, [&] { exchange_.finish_pull(); });
    bool next_more = false;
    if (ahead) {
      next_more = read(*next_fed);
      if (next_more) begin_pull(*next_fed);
    }
    const auto which = [this] {
      return "batch " + std::to_string(skipped_ + fetches_.batches() + 1) + " of thread " +
             std::to_string(thread_);
    };
    keeper_.watch(now_fed->feed(), which,
                  [&] { profile_.timed(Stage::compute, [&] { compute(*now_fed, which); }); });
    profile_.timed(Stage::push, [&] { exchange_.push(); });
    fetches_.account(now_fed->rows(),
                     [this](const std::string& name) -> const Tensor& { return executor_.tensor(name); });
    profile_.track().flush();
    more = ahead ? next_more : read(*next_fed);
    std::swap(now_fed, next_fed);
  }
  profile_.timed(Stage::push, [&] { exchange_.drain(); });
  fetches_.end();
}

void TrainerThread::compute(const BatchFeed& feed, const std::function<std::string()>& which) {
  const bool ahead = epoch_.runs_ahead(), checks = epoch_.options.check_nan,
             measures = profile_.wants_operators();
  if (!ahead && !checks && !measures) return executor_.run(feed.feed());
  executor_.run(feed.feed(), [&](const engine::Operator& op, double seconds) {
    if (measures) profile_.ran(op, seconds);
    if (checks) executor_.expect_finite(op, which);
    if (ahead) exchange_.after_operator();
  });
}

/// The thread's work, from entering the epoch to leaving it; never throws.
void work(const Epoch& epoch, std::uint32_t thread, std::uint64_t skipped,
          std::optional<TrainerThread>& trainer, Latch& latch) noexcept {
  try {
    trainer.emplace(epoch, thread, skipped);
    trainer->run(latch);
  } catch (...) {
    latch.failed(std::current_exception());
  }
  if (epoch.client != nullptr && epoch.options.train) {
    // Also after a failure: the others must not wait for this thread's next step.
    try {
      epoch.client->leave_epoch(thread);
    } catch (...) {
      latch.failed(std::current_exception());
    }
  }
  latch.ended();
}

/// The newest dense values, for whoever reads the scope after the epoch.
void refresh_scope(const Epoch& epoch) {
  ps::Pull request;
  for (const TablePlan::Entry& entry : epoch.plan.entries) {
    if (entry.table.kind != ps::TableConfig::Kind::dense) continue;
    Tensor& tensor = epoch.scope.tensor(entry.parameter);
    tensor.resize(engine::DataType::float32, epoch.program.variable(entry.parameter).shape);
    request.dense.push_back({entry.table.id, tensor.values<float>()});
  }
  if (!request.dense.empty()) epoch.client->pull(request);
}

/// Of an epoch that was complete before the trainer was started again.
EpochResult whole_epoch_before(const Epoch& epoch) {
  refresh_scope(epoch);
  EpochResult result;
  result.skipped_whole = true;
  log::warning("this trainer was started again: the pass was done before");
  result.fetch_means.assign(epoch.options.fetch.size(), std::numeric_limits<double>::quiet_NaN());
  return result;
}

/// By thread: the batches that were done before the trainer was started again;
/// kWholeEpoch for all of the first.
std::vector<std::uint64_t> batches_before(const Epoch& epoch, std::size_t threads) {
  std::vector<std::uint64_t> before(threads, 0);
  if (epoch.client == nullptr || !epoch.options.train) return before;
  for (std::size_t t = 0; t < threads; ++t)
    before[t] = epoch.client->skip_steps(static_cast<std::uint32_t>(t));
  return before;
}

std::uint64_t data_of(const Epoch& epoch) {
  const std::uint64_t data = epoch.dataset.fingerprint(), part = epoch.options.part;
  return data == 0 || part == 0 ? data : dataset::Fingerprint().add(data).add(part).value();
}

EpochResult run_threads(const Epoch& epoch) {
  // Each thread reads the same files in every run: in sync mode two runs give the same bits, and a trainer
  // that is started again goes on where the one before it was.
  const bool trains_on_servers = epoch.client != nullptr && epoch.options.train;
  const bool in_turn =
      epoch.options.mode == ps::Mode::sync || (trains_on_servers && epoch.client->counts_epochs());
  const DatasetReaders reading(epoch.dataset, in_turn, epoch.options.timeline);
  const std::size_t threads = epoch.dataset.readers();
  if (trains_on_servers) {
    epoch.client->begin_epoch({static_cast<std::uint32_t>(threads), data_of(epoch)});
    if (epoch.client->has_left_epoch()) {
      log::warning(
          "this trainer was started again in the middle of an epoch, and goes on with other data, batches or "
          "threads: what it had pushed of that epoch stays, and what is read again counts twice");
    }
    if (epoch.counts_staleness()) static_cast<void>(epoch.client->take_staleness());
  }
  const std::vector<std::uint64_t> before = batches_before(epoch, threads);
  if (before.at(0) == ps::StepClient::kWholeEpoch) return whole_epoch_before(epoch);
  const std::uint64_t skipped = std::accumulate(before.begin(), before.end(), std::uint64_t{0});
  if (skipped > 0)
    log::warning("this trainer was restarted: the epoch continues after " + std::to_string(skipped) +
                 " batches that were done before");
  Latch latch(threads);
  std::vector<std::optional<TrainerThread>> trainers(threads);
  {
    std::vector<std::jthread> all;
    for (std::size_t t = 0; t < threads; ++t) {
      all.emplace_back([&, t] { work(epoch, static_cast<std::uint32_t>(t), before[t], trainers[t], latch); });
    }
    latch.wait();
    if (latch.has_failed()) epoch.dataset.stop();
  }
  latch.rethrow();
  if (epoch.options.train) refresh_scope(epoch);

  EpochResult result;
  result.skipped = skipped;
  if (epoch.counts_staleness()) result.staleness = epoch.client->take_staleness();
  for (const auto& trainer : trainers) {
    add_to(result, trainer->fetches());
    add_to(result, trainer->profile());
  }
  finish_means(result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - epoch.start).count();
  return result;
}

/// The program as it is run: only what is fetched or pushed can be read after a batch.
engine::Program optimized(const engine::Program& program, const TablePlan& plan,
                          const EpochOptions& options) {
  if (options.check_nan) return program;
  engine::Kept kept(options.fetch.begin(), options.fetch.end());
  for (const TablePlan::Entry& entry : plan.entries)
    kept.insert({entry.gradient, entry.keys, entry.shows, entry.clicks});
  return engine::optimize(program, kept, options.passes_off);
}

}  // namespace

EpochResult run_epoch(const engine::Program& program, engine::Scope& scope, dataset::BatchSource& dataset,
                      const TablePlan& plan, ps::StepClient* client, const EpochOptions& options) {
  const engine::Program forward = options.train ? engine::Program() : engine::clone_for_test(program);
  const engine::Program& asked = options.train ? program : forward;
  engine::check_values_are_made(asked);
  for (const std::string& name : options.fetch) static_cast<void>(asked.variable(name));
  const engine::Program used = optimized(asked, plan, options);
  const EpochResult result =
      run_threads({asked, used, scope, dataset, plan, client, options, inputs_of(asked, dataset.slots())});
  if (options.timeline) options.timeline->close();
  return result;
}

}  // namespace fleetrun::runtime
