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

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/passes/passes.h"
#include "runtime/log/log.h"
#include "runtime/trainer/batch_feed.h"
#include "runtime/trainer/parameter_exchange.h"
#include "runtime/trainer/pass_fetches.h"
#include "runtime/trainer/reading.h"

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

struct Pass {
  const engine::Program& program;
  engine::Scope& scope;
  dataset::BatchSource& dataset;
  const TablePlan& plan;
  ps::Client* client;
  const PassOptions& options;
  std::vector<BatchInput> inputs;
  PassProfile::Clock::time_point start = PassProfile::Clock::now();

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
  TrainerThread(const Pass& pass, std::uint32_t thread, std::uint64_t skipped)
      : pass_(pass),
        thread_(thread),
        skipped_(skipped),
        profile_(pass.options.time_operators,
                 Track(pass.options.timeline, "thread " + std::to_string(thread))),
        exchange_(pass.program, pass.plan, pass.client,
                  {.thread = thread,
                   .train = pass.options.train,
                   .runs_ahead = pass.runs_ahead(),
                   .pull_dense_every = pass.pull_dense_every(),
                   .track = &profile_.track()}),
        executor_(pass.program, pass.scope, pass.plan.entries.empty() ? nullptr : &exchange_,
                  exchange_.dense_parameters()),
        fetches_(pass.options, thread == 0, skipped) {
    exchange_.attach(executor_);
  }

  void run(const Latch& latch);

  const PassFetches& fetches() const noexcept { return fetches_; }
  const PassProfile& profile() const noexcept { return profile_; }

 private:
  bool next_batch(BatchFeed& feed) {
    {
      const Span span(&profile_.track(), "next batch", "read");
      if (!pass_.dataset.next(thread_, feed.batch())) return false;
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
  void compute(const BatchFeed& feed);

  const Pass& pass_;
  std::uint32_t thread_;
  std::uint64_t skipped_;
  PassProfile profile_;
  ParameterExchange exchange_;
  engine::Executor executor_;
  PassFetches fetches_;
};

void TrainerThread::run(const Latch& latch) {
  BatchFeed first(pass_.inputs), second(pass_.inputs);
  BatchFeed* now_fed = &first;
  BatchFeed* next_fed = &second;
  const bool ahead = pass_.runs_ahead();
  skip(pass_.dataset, thread_, skipped_);
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
    profile_.timed(Stage::compute, [&] { compute(*now_fed); });
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

void TrainerThread::compute(const BatchFeed& feed) {
  const bool ahead = pass_.runs_ahead(), checks = pass_.options.check_nan,
             measures = profile_.wants_operators();
  if (!ahead && !checks && !measures) return executor_.run(feed.feed());
  executor_.run(feed.feed(), [&](const engine::Operator& op, double seconds) {
    if (measures) profile_.ran(op, seconds);
    if (checks)
      executor_.expect_finite(op, [this] {
        return "batch " + std::to_string(skipped_ + fetches_.batches() + 1) + " of thread " +
               std::to_string(thread_);
      });
    if (ahead) exchange_.after_operator();
  });
}

/// The thread's work, from entering the pass to leaving it; never throws.
void work(const Pass& pass, std::uint32_t thread, std::uint64_t skipped,
          std::optional<TrainerThread>& trainer, Latch& latch) noexcept {
  try {
    trainer.emplace(pass, thread, skipped);
    trainer->run(latch);
  } catch (...) {
    latch.failed(std::current_exception());
  }
  if (pass.client != nullptr && pass.options.train) {
    // Also after a failure: the others must not wait for this thread's next step.
    try {
      pass.client->leave_pass(thread);
    } catch (...) {
      latch.failed(std::current_exception());
    }
  }
  latch.ended();
}

/// The newest dense values, for whoever reads the scope after the pass.
void refresh_scope(const Pass& pass) {
  ps::Pull request;
  for (const TablePlan::Entry& entry : pass.plan.entries) {
    if (entry.table.kind != ps::TableConfig::Kind::dense) continue;
    Tensor& tensor = pass.scope.tensor(entry.parameter);
    tensor.resize(engine::DataType::float32, pass.program.variable(entry.parameter).shape);
    request.dense.push_back({entry.table.id, tensor.values<float>()});
  }
  if (!request.dense.empty()) pass.client->pull(request);
}

/// Of a pass that was complete before the trainer was started again.
PassResult whole_pass_before(const Pass& pass) {
  refresh_scope(pass);
  PassResult result;
  result.skipped_whole = true;
  log::warning("this trainer was started again: the pass was done before");
  result.fetch_means.assign(pass.options.fetch.size(), std::numeric_limits<double>::quiet_NaN());
  return result;
}

/// By thread: the batches that were done before the trainer was started again;
/// kWholePass for all of the first.
std::vector<std::uint64_t> batches_before(const Pass& pass, std::size_t threads) {
  std::vector<std::uint64_t> before(threads, 0);
  if (pass.client == nullptr || !pass.options.train) return before;
  for (std::size_t t = 0; t < threads; ++t)
    before[t] = pass.client->skip_steps(static_cast<std::uint32_t>(t));
  return before;
}

PassResult run_threads(const Pass& pass) {
  // In sync mode two runs give the same bits: each thread reads the same files in both.
  const Reading reading(pass.dataset, pass.options.mode == ps::Mode::sync, pass.options.timeline);
  const std::size_t threads = pass.dataset.readers();
  if (pass.client != nullptr && pass.options.train) {
    pass.client->begin_pass(static_cast<std::uint32_t>(threads));
    if (pass.counts_staleness()) static_cast<void>(pass.client->take_staleness());
  }
  const std::vector<std::uint64_t> before = batches_before(pass, threads);
  if (before.at(0) == ps::Client::kWholePass) return whole_pass_before(pass);
  const std::uint64_t skipped = std::accumulate(before.begin(), before.end(), std::uint64_t{0});
  if (skipped > 0)
    log::warning("this trainer was restarted: the epoch continues after " + std::to_string(skipped) +
                 " batches that were done before");
  Latch latch(threads);
  std::vector<std::optional<TrainerThread>> trainers(threads);
  {
    std::vector<std::jthread> all;
    for (std::size_t t = 0; t < threads; ++t) {
      all.emplace_back([&, t] { work(pass, static_cast<std::uint32_t>(t), before[t], trainers[t], latch); });
    }
    latch.wait();
    if (latch.has_failed()) pass.dataset.stop();
  }
  latch.rethrow();
  if (pass.options.train) refresh_scope(pass);

  PassResult result;
  result.skipped = skipped;
  if (pass.counts_staleness()) result.staleness = pass.client->take_staleness();
  for (const auto& trainer : trainers) {
    add_to(result, trainer->fetches());
    add_to(result, trainer->profile());
  }
  finish_means(result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - pass.start).count();
  return result;
}

/// The program as it is run: only what is fetched or pushed can be read after a batch.
engine::Program optimized(const engine::Program& program, const TablePlan& plan, const PassOptions& options) {
  if (options.check_nan) return program;
  engine::Kept kept(options.fetch.begin(), options.fetch.end());
  for (const TablePlan::Entry& entry : plan.entries)
    kept.insert({entry.gradient, entry.keys, entry.shows, entry.clicks});
  return engine::optimize(program, kept, options.passes_off);
}

}  // namespace

PassResult run_pass(const engine::Program& program, engine::Scope& scope, dataset::BatchSource& dataset,
                    const TablePlan& plan, ps::Client* client, const PassOptions& options) {
  const engine::Program forward = options.train ? engine::Program() : engine::clone_for_test(program);
  const engine::Program& asked = options.train ? program : forward;
  for (const std::string& name : options.fetch) static_cast<void>(asked.variable(name));
  const engine::Program used = optimized(asked, plan, options);
  const PassResult result =
      run_threads({used, scope, dataset, plan, client, options, inputs_of(asked, dataset.slots())});
  if (options.timeline) options.timeline->close();
  return result;
}

}  // namespace fleetrun::runtime
