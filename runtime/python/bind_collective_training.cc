// Training of a program whose gradients, or parameters, are averaged over the ranks of a job.

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/engine/failed_step.h"
#include "runtime/python/array_feed.h"
#include "runtime/python/bindings.h"
#include "runtime/python/collective_options.h"
#include "runtime/python/epoch_options.h"
#include "runtime/trainer/collective_epoch.h"
#include "runtime/trainer/epoch_profile.h"
#include "runtime/trainer/gradient_exchange.h"

namespace fleetrun::python {

namespace {

using dataset::BatchSource;
using runtime::CollectiveOptions;
using ProgramPtr = std::shared_ptr<engine::Program>;
using ScopePtr = std::shared_ptr<engine::Scope>;

using CompressionTuple = std::tuple<std::size_t, std::size_t, std::vector<double>>;
using LocalTuple = std::tuple<std::size_t, std::size_t, bool>;

CollectiveOptions options_of(double memory_mib, int groups_size, bool half,
                             const std::optional<CompressionTuple>& compression,
                             const std::optional<LocalTuple>& local, std::string loss) {
  CollectiveOptions options;
  options.mean.rule = {memory_mib, groups_size};
  options.mean.half = half;
  options.loss = std::move(loss);
  if (compression) {
    const auto& [begin_step, ramp_steps, sparsity] = *compression;
    options.mean.compression = runtime::CompressionRule{begin_step, ramp_steps, sparsity};
  }
  if (local) {
    const auto& [k_steps, begin_step, adaptive] = *local;
    options.local = runtime::LocalStepOptions{k_steps, begin_step, adaptive};
  }
  return options;
}

/// An executor with its exchange, the tensors that were fed last, and everything they need alive.
class FedCollectiveRunner {
 public:
  FedCollectiveRunner(ProgramPtr program, ScopePtr scope, Groups groups, const CollectiveOptions& options,
                      const std::shared_ptr<Timeline>& timeline)
      : program_(std::move(program)),
        scope_(std::move(scope)),
        groups_(std::move(groups)),
        loss_(options.loss),
        profile_(false, Track(timeline, "thread 0")) {
    if (options.local) {
      executor_.emplace(*program_, *scope_);
      local_.emplace(*program_, *scope_, *groups_.front()->communicator, *options.local);
    } else {
      exchange_.emplace(*program_, *scope_, communicators_of(groups_), options.mean);
    }
    keeper_.emplace(*program_, nullptr, executor());
  }

  ArrayFeed& feed() { return feed_; }
  const Groups& groups() const { return groups_; }
  const engine::Executor& executor() const { return exchange_ ? exchange_->executor() : *executor_; }
  /// The program as it is run.
  const engine::Program& program() const { return exchange_ ? exchange_->program() : *program_; }
  std::size_t buckets() const { return exchange_ ? exchange_->buckets() : 0; }

  void run(const ArrayFeed::Tensors& tensors) {
    keeper_->watch(
        tensors, [] { return std::string(); },
        [&] { exchange_ ? exchange_->run(tensors, &profile_) : run_local(tensors); });
    profile_.track().flush();
  }
  void synchronize() {
    if (local_) local_->synchronize();
  }
  std::size_t since_average() const { return local_ ? local_->since_average() : 0; }

 private:
  void run_local(const ArrayFeed::Tensors& tensors) {
    local_->begin();
    profile_.timed(runtime::Stage::compute, [&] {
      if (!profile_.wants_operators()) return executor_->run(tensors);
      executor_->run(tensors,
                     [this](const engine::Operator& op, double seconds) { profile_.ran(op, seconds); });
    });
    profile_.timed(runtime::Stage::exchange, [&] {
      local_->after_step(true, static_cast<double>(executor_->tensor(loss_).values<float>()[0]));
    });
  }

  ProgramPtr program_;
  ScopePtr scope_;
  Groups groups_;
  std::string loss_;
  std::optional<engine::Executor> executor_;
  runtime::EpochProfile profile_;
  std::optional<runtime::GradientExchange> exchange_;
  std::optional<runtime::LocalSteps> local_;
  std::optional<engine::StepKeeper> keeper_;
  ArrayFeed feed_;
};
using RunnerPtr = std::shared_ptr<FedCollectiveRunner>;

void run_step(const RunnerPtr& self, const ArrayFeed::Arrays& arrays) {
  const ArrayFeed::Tensors tensors = self->feed().take(arrays);
  self->groups().front()->thread.run([self, tensors] { self->run(tensors); },
                                     [self] { interrupt(self->groups()); });
}

void synchronize(const RunnerPtr& self) {
  self->groups().front()->thread.run([self] { self->synchronize(); }, [self] { interrupt(self->groups()); });
}

/// Passes over datasets, with everything they need alive.
struct FedCollectiveEpoch {
  FedCollectiveEpoch(ProgramPtr in_program, ScopePtr in_scope, Groups in_groups,
                     const CollectiveOptions& options)
      : program(std::move(in_program)),
        scope(std::move(in_scope)),
        groups(std::move(in_groups)),
        epoch(*program, *scope, communicators_of(groups), options) {}

  ProgramPtr program;
  ScopePtr scope;
  Groups groups;
  runtime::CollectiveEpoch epoch;
};

runtime::EpochResult run_epoch(const std::shared_ptr<FedCollectiveEpoch>& self,
                               const std::shared_ptr<BatchSource>& dataset, std::vector<std::string> fetch,
                               std::vector<std::string> fetch_info, std::int64_t print_period,
                               const nb::callable& print_line, bool debug) {
  runtime::EpochOptions options =
      epoch_options(std::move(fetch), std::move(fetch_info), print_period, print_line);
  options.time_operators = debug;
  const auto result = std::make_shared<runtime::EpochResult>();
  self->groups.front()->thread.run([=] { *result = self->epoch.run(*dataset, options); },
                                   [self, dataset] {
                                     dataset->stop();
                                     interrupt(self->groups);
                                   });
  return *result;
}

}  // namespace

void bind_collective_training(nb::module_& module) {
  nb::class_<CollectiveOptions>(module, "CollectiveOptions",
                                "How ranks train together; memory_mib: of a bucket, -1 for no buckets.")
      .def(nb::new_(&options_of), "memory_mib"_a = -1.0, "groups_size"_a = 1, "half"_a = false,
           "compression"_a = nb::none(), "local"_a = nb::none(), "loss"_a = "");
  nb::class_<FedCollectiveRunner>(module, "CollectiveRunner",
                                  "Steps of a program whose gradients are averaged.")
      .def(make<FedCollectiveRunner, ProgramPtr, ScopePtr, Groups, const CollectiveOptions&,
                const std::shared_ptr<Timeline>&>(),
           "program"_a, "scope"_a, "groups"_a, "options"_a, "timeline"_a = nb::none())
      .def("run", run_step, "feed"_a,
           "A step, which every rank makes. Throws: Error(network) naming a rank that is gone.")
      .def("synchronize", synchronize, "Averages what local steps have moved apart.")
      .def_prop_ro("since_average", &FedCollectiveRunner::since_average)
      .def("value", [](const FedCollectiveRunner& self,
                       const std::string& name) { return copy_of(self.executor().tensor(name)); })
      .def_prop_ro("schedule",
                   [](const FedCollectiveRunner& self) { return engine::to_string(self.program()); })
      .def_prop_ro("buckets", &FedCollectiveRunner::buckets);
  nb::class_<FedCollectiveEpoch>(module, "CollectivePass",
                                 "Passes of a program over datasets, each rank its own files.")
      .def(make<FedCollectiveEpoch, ProgramPtr, ScopePtr, Groups, const CollectiveOptions&>(), "program"_a,
           "scope"_a, "groups"_a, "options"_a)
      .def("run", run_epoch, "dataset"_a, "fetch"_a, "fetch_info"_a, "print_period"_a, "print_line"_a,
           "debug"_a = false, "A pass, which every rank makes. Throws: Error(data), Error(network).");
}

}  // namespace fleetrun::python
