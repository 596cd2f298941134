// Steps of a program on several replicas.

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ps/client/client.h"
#include "runtime/python/array_feed.h"
#include "runtime/python/bindings.h"
#include "runtime/python/collective_options.h"
#include "runtime/python/interrupt.h"
#include "runtime/python/without_gil.h"
#include "runtime/trainer/replica_runner.h"

namespace fleetrun::python {

namespace {

using engine::GradientScale;
using engine::ReduceStrategy;
using engine::ReplicaOptions;
using ProgramPtr = std::shared_ptr<engine::Program>;
using ScopePtr = std::shared_ptr<engine::Scope>;
using PlanPtr = std::shared_ptr<runtime::TablePlan>;
using ClientPtr = std::shared_ptr<ps::Client>;
using Arrays = ArrayFeed::Arrays;

/// A runner with the tensors that were fed last, and everything it needs alive.
class FedReplicaRunner {
 public:
  FedReplicaRunner(ProgramPtr program, ScopePtr scope, const ReplicaOptions& replicas, Groups groups,
                   const runtime::CollectiveOptions& options)
      : program_(std::move(program)),
        scope_(std::move(scope)),
        groups_(std::move(groups)),
        runner_(*program_, *scope_, replicas, communicators_of(groups_), options),
        feeds_(replicas.replicas) {}
  FedReplicaRunner(ProgramPtr program, ScopePtr scope, const ReplicaOptions& replicas, PlanPtr plan,
                   ClientPtr client, const std::string& mode)
      : program_(std::move(program)),
        scope_(std::move(scope)),
        plan_(std::move(plan)),
        client_(std::move(client)),
        runner_(*program_, *scope_, replicas, *plan_, *client_, ps::mode_of(mode)),
        feeds_(replicas.replicas) {}

  ArrayFeed::Tensors take(std::size_t part, const Arrays& arrays) { return feeds_.at(part).take(arrays); }
  const Groups& groups() const { return groups_; }
  bool has_tables() const { return client_ != nullptr; }
  runtime::ReplicaRunner& runner() { return runner_; }

 private:
  ProgramPtr program_;
  ScopePtr scope_;
  Groups groups_;
  PlanPtr plan_;
  ClientPtr client_;
  runtime::ReplicaRunner runner_;
  std::deque<ArrayFeed> feeds_;
};
using RunnerPtr = std::shared_ptr<FedReplicaRunner>;

/// Calls `step`, without the interpreter.
template <class Step>
void run_step(const RunnerPtr& self, const Step& step) {
  if (!self->groups().empty()) {
    self->groups().front()->thread.run([self, step] { step(self->runner()); },
                                       [self] { interrupt(self->groups()); });
    return;
  }
  if (self->has_tables()) {
    run_interruptibly([self, step] { step(self->runner()); });
    return;
  }
  const WithoutGil released;
  step(self->runner());
}

void run(const RunnerPtr& self, const Arrays& arrays) {
  const ArrayFeed::Tensors tensors = self->take(0, arrays);
  run_step(self, [tensors](runtime::ReplicaRunner& runner) { runner.run(tensors); });
}

void run_each(const RunnerPtr& self, const std::vector<Arrays>& arrays) {
  std::vector<ArrayFeed::Tensors> feeds;
  for (std::size_t i = 0; i < arrays.size() && i < self->runner().size(); ++i)
    feeds.push_back(self->take(i, arrays[i]));
  feeds.resize(arrays.size());
  run_step(self, [feeds](runtime::ReplicaRunner& runner) { runner.run(std::span(feeds)); });
}

std::vector<std::shared_ptr<engine::Tensor>> values(FedReplicaRunner& self, const std::string& name) {
  std::vector<std::shared_ptr<engine::Tensor>> all;
  for (std::size_t replica = 0; replica < self.runner().active(); ++replica)
    all.push_back(copy_of(self.runner().tensor(replica, name)));
  return all;
}

}  // namespace

void bind_replicas(nb::module_& module) {
  nb::enum_<ReduceStrategy>(module, "ReduceStrategy")
      .value("AllReduce", ReduceStrategy::all_reduce)
      .value("Reduce", ReduceStrategy::reduce);
  nb::enum_<GradientScale>(module, "GradientScale")
      .value("CoeffNumDevice", GradientScale::mean)
      .value("One", GradientScale::one)
      .value("Customized", GradientScale::customized);
  nb::class_<ReplicaOptions>(
      module, "ReplicaOptions",
      "How many replicas, on how many threads (0: one each), and how they share gradients.")
      .def(
          nb::new_([](std::size_t replicas, std::size_t threads, ReduceStrategy reduce, GradientScale scale) {
            return ReplicaOptions{.replicas = replicas, .threads = threads, .reduce = reduce, .scale = scale};
          }),
          "replicas"_a, "threads"_a, "reduce"_a, "scale"_a);
  nb::class_<FedReplicaRunner>(module, "ReplicaRunner", "Runs a program on several replicas.")
      .def(make<FedReplicaRunner, ProgramPtr, ScopePtr, const ReplicaOptions&, Groups,
                const runtime::CollectiveOptions&>())
      .def(make<FedReplicaRunner, ProgramPtr, ScopePtr, const ReplicaOptions&, PlanPtr, ClientPtr,
                const std::string&>())
      .def("run", run, "feed"_a, "A step; {name: array} is split along the batch. Throws: as Executor.run.")
      .def("run_each", run_each, "feeds"_a, "A step with a feed for each replica.")
      .def("merged", [](FedReplicaRunner& self,
                        const std::string& name) { return copy_of(self.runner().merged(name)); })
      .def("synchronize",
           [](const RunnerPtr& self) {
             run_step(self, [](runtime::ReplicaRunner& runner) { runner.synchronize(); });
           })
      .def_prop_ro("since_average", [](FedReplicaRunner& self) { return self.runner().since_average(); })
      .def("end_pass",
           [](const RunnerPtr& self) {
             run_step(self, [](runtime::ReplicaRunner& runner) { runner.end_epoch(); });
           })
      .def("values", values, "name"_a, "A copy of the variable's value on each replica that had examples.");
}

}  // namespace fleetrun::python
