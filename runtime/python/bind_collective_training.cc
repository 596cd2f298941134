// Steps of a program whose gradients are averaged over the ranks of a job.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/gradient_exchange.h"
#include "runtime/python/bindings.h"
#include "runtime/python/collective_group.h"
#include "runtime/python/feed.h"

namespace fleetrun::python {

namespace {

namespace py = pybind11;
using ProgramPtr = std::shared_ptr<engine::Program>;
using ScopePtr = std::shared_ptr<engine::Scope>;

std::vector<collective::Communicator*> communicators_of(const std::vector<GroupPtr>& groups) {
  std::vector<collective::Communicator*> communicators;
  for (const GroupPtr& group : groups) communicators.push_back(group->communicator.get());
  return communicators;
}

/// An executor with its exchange, the tensors that were fed last, and everything they need alive.
struct FedCollectiveRunner {
  FedCollectiveRunner(ProgramPtr in_program, ScopePtr in_scope, std::vector<GroupPtr> in_groups,
                      double memory_mib, int groups_size)
      : program(std::move(in_program)),
        scope(std::move(in_scope)),
        groups(std::move(in_groups)),
        executor(*program, *scope),
        exchange(*program, executor, communicators_of(groups), {memory_mib, groups_size}) {}

  void interrupt() const {
    for (const GroupPtr& group : groups) group->interrupt();
  }

  ProgramPtr program;
  ScopePtr scope;
  std::vector<GroupPtr> groups;
  engine::Executor executor;
  runtime::GradientExchange exchange;
  Feed feed;
};

void run_step(const std::shared_ptr<FedCollectiveRunner>& self, const Feed::Arrays& arrays) {
  const Feed::Tensors tensors = self->feed.take(arrays);
  self->groups.front()->thread.run([self, tensors] { self->exchange.run(tensors); },
                                   [self] { self->interrupt(); });
}

}  // namespace

void bind_collective_training(py::module_& module) {
  py::class_<FedCollectiveRunner, std::shared_ptr<FedCollectiveRunner>>(module, "CollectiveRunner")
      .def(py::init<ProgramPtr, ScopePtr, std::vector<GroupPtr>, double, int>())
      .def("run", run_step)
      .def("value", [](const FedCollectiveRunner& self,
                       const std::string& name) { return copy_of(self.executor.tensor(name)); })
      .def_property_readonly("buckets",
                             [](const FedCollectiveRunner& self) { return self.exchange.buckets(); });
}

}  // namespace fleetrun::python
