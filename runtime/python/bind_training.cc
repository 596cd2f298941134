// Training: which parameter becomes which table, one step on fed arrays, a pass over a dataset.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dataset/base/batch_source.h"
#include "ps/client/client.h"
#include "ps/modes/trainer_mode.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/engine/optimizer.h"
#include "runtime/inference/table_text.h"
#include "runtime/python/array_feed.h"
#include "runtime/python/bindings.h"
#include "runtime/python/epoch_options.h"
#include "runtime/python/interrupt.h"
#include "runtime/python/timelines.h"
#include "runtime/python/without_gil.h"
#include "runtime/trainer/dataset_trainer.h"
#include "runtime/trainer/heartbeat.h"
#include "runtime/trainer/step_runner.h"
#include "runtime/trainer/table_plan.h"

namespace fleetrun::python {

namespace {

using dataset::BatchSource;
using engine::OptimizerConfig;
using runtime::EpochResult;
using runtime::TablePlan;
using ClientPtr = std::shared_ptr<ps::Client>;
using ProgramPtr = std::shared_ptr<engine::Program>;
using ScopePtr = std::shared_ptr<engine::Scope>;
using PlanPtr = std::shared_ptr<TablePlan>;

/// (parameter, gradient, the keys of a gradient of rows or nothing).
using GradientNames = std::vector<std::tuple<std::string, std::string, std::string>>;

std::vector<engine::ParameterGradient> gradients_of(const GradientNames& names) {
  std::vector<engine::ParameterGradient> gradients;
  for (const auto& [parameter, gradient, keys] : names)
    gradients.push_back({.parameter = parameter, .gradient = gradient, .rows = !keys.empty(), .keys = keys});
  return gradients;
}

GradientNames names_of(const std::vector<engine::ParameterGradient>& gradients) {
  GradientNames names;
  for (const auto& gradient : gradients)
    names.emplace_back(gradient.parameter, gradient.gradient, gradient.keys);
  return names;
}

/// Embeddings with is_sparse get gradients of rows where the optimizer can do with them, and without one
/// gradients of all rows, which other operators can take.
GradientNames append_backward(engine::Program& main, const std::string& loss,
                              const OptimizerConfig* optimizer, const std::set<std::string>& asked) {
  for (engine::Operator& op : main.operators()) {
    if (op.type == "sparse_embedding") {
      throw Error(ErrorKind::config, "append_backward: '" + op.outputs[0] + "' is of a table of rows",
                  "train it with an optimizer's minimize()");
    }
    if (op.type == "embedding" && optimizer == nullptr) op.attributes["is_sparse"] = false;
  }
  if (optimizer != nullptr) engine::decay_all_rows(main, *optimizer);
  return names_of(engine::append_backward(main, loss, asked));
}

std::vector<TablePlan*> pointers(const std::vector<PlanPtr>& plans) {
  std::vector<TablePlan*> pointers;
  for (const PlanPtr& plan : plans) pointers.push_back(plan.get());
  return pointers;
}

void bind_plan(nb::module_& module) {
  using Entry = TablePlan::Entry;
  nb::class_<OptimizerConfig> config(module, "OptimizerConfig");
  nb::enum_<OptimizerConfig::Kind>(config, "Kind")
      .value("sgd", OptimizerConfig::Kind::sgd)
      .value("adagrad", OptimizerConfig::Kind::adagrad)
      .value("adam", OptimizerConfig::Kind::adam)
      .value("momentum", OptimizerConfig::Kind::momentum)
      .value("ftrl", OptimizerConfig::Kind::ftrl)
      .value("rmsprop", OptimizerConfig::Kind::rmsprop)
      .value("adamax", OptimizerConfig::Kind::adamax)
      .value("adadelta", OptimizerConfig::Kind::adadelta)
      .value("lamb", OptimizerConfig::Kind::lamb)
      .value("lars_momentum", OptimizerConfig::Kind::lars_momentum)
      .value("decayed_adagrad", OptimizerConfig::Kind::decayed_adagrad);
  // "value" alone would be the name of a property that every enumeration has.
  nb::enum_<OptimizerConfig::Clip>(config, "Clip")
      .value("by_value", OptimizerConfig::Clip::value)
      .value("by_norm", OptimizerConfig::Clip::norm)
      .value("by_global_norm", OptimizerConfig::Clip::global_norm);
  config.def(nb::init<>())
      .def_rw("kind", &OptimizerConfig::kind)
      .def_rw("learning_rate", &OptimizerConfig::learning_rate)
      .def_rw("beta1", &OptimizerConfig::beta1)
      .def_rw("beta2", &OptimizerConfig::beta2)
      .def_rw("epsilon", &OptimizerConfig::epsilon)
      .def_rw("initial_accumulator", &OptimizerConfig::initial_accumulator)
      .def_rw("lazy_rows", &OptimizerConfig::lazy_rows)
      .def_rw("own_decay", &OptimizerConfig::own_decay)
      .def_rw("undecayed", &OptimizerConfig::undecayed)
      .def_rw("state_numbers", &OptimizerConfig::state_numbers)
      .def_rw("older_formula", &OptimizerConfig::older_formula)
      .def_rw("always_adapts", &OptimizerConfig::always_adapts)
      .def_rw("adam_d2sum", &OptimizerConfig::adam_d2sum)
      .def_rw("lars_coefficient", &OptimizerConfig::lars_coefficient)
      .def_rw("momentum", &OptimizerConfig::momentum)
      .def_rw("nesterov", &OptimizerConfig::nesterov)
      .def_rw("rho", &OptimizerConfig::rho)
      .def_rw("centered", &OptimizerConfig::centered)
      .def_rw("clip_kind", &OptimizerConfig::clip_kind)
      .def_rw("clip_least", &OptimizerConfig::clip_least)
      .def_rw("clip", &OptimizerConfig::clip)
      .def_rw("clips_means", &OptimizerConfig::clips_means)
      .def_rw("l1", &OptimizerConfig::l1)
      .def_rw("l2", &OptimizerConfig::l2)
      .def_rw("learning_rate_power", &OptimizerConfig::learning_rate_power)
      .def_rw("l1_decay", &OptimizerConfig::l1_decay)
      .def_rw("l2_decay", &OptimizerConfig::l2_decay)
      .def_rw("rate", &OptimizerConfig::rate)
      .def("set_own", [](OptimizerConfig& self, const std::string& parameter, double rate_factor,
                         bool has_decay, double l1_decay, double l2_decay, bool is_clipped) {
        self.own[parameter] = {rate_factor, has_decay, l1_decay, l2_decay, is_clipped};
      });
  nb::class_<Entry>(module, "TablePlanEntry")
      .def_ro("parameter", &Entry::parameter)
      .def_ro("gradient", &Entry::gradient)
      .def_ro("table", &Entry::table);
  nb::class_<TablePlan>(module, "TablePlan")
      .def(make<TablePlan>())
      .def("entries", [](const TablePlan& self) { return self.entries; })
      .def("tables", &TablePlan::tables)
      .def(
          "table_text",
          [](const TablePlan& self, const std::string& mode) {
            return inference::table_text(ps::server_tables(ps::mode_of(mode), self.tables()));
          },
          "The tables as they are on servers, and in what those save.")
      .def_static(
          "of_text",
          [](const std::string& text) {
            auto plan = std::make_shared<TablePlan>();
            for (ps::TableConfig& table : inference::parse_tables(text)) {
              plan->entries.push_back({.parameter = table.name, .gradient = "", .keys = "", .table = table});
            }
            return plan;
          },
          "The tables of table_text(), to be read only.")
      .def("number_beside",
           [](TablePlan& self, const std::vector<PlanPtr>& others) { self.number_beside(pointers(others)); })
      .def("read", [](TablePlan& self, const TablePlan& other,
                      const engine::Program& program) { self.read(other, program); })
      .def("split_dense", [](TablePlan& self, std::uint64_t min_block) {
        for (Entry& entry : self.entries) {
          if (entry.table.kind == ps::TableConfig::Kind::dense) entry.table.min_block = min_block;
        }
      });
  module.def("distribute", [](engine::Program& main, engine::Program& startup, const std::string& loss,
                              const OptimizerConfig& optimizer, bool servers,
                              const runtime::TableChoices& choices, const std::vector<PlanPtr>& others) {
    const auto placement = servers ? runtime::Placement::server : runtime::Placement::one_process;
    return std::make_shared<TablePlan>(
        runtime::distribute(main, startup, loss, optimizer, placement, choices, pointers(others)));
  });
  // Backward, clipping and updates one by one, for a script that does something between them.
  module.def("append_backward", &append_backward, "main"_a, "loss"_a, "optimizer"_a = nb::none(),
             "asked"_a = std::set<std::string>(),
             "[(parameter, gradient, the keys of its rows or nothing)] of every parameter. Without an "
             "optimizer each is of all rows. asked: of these variables instead.");
  module.def("append_clip",
             [](engine::Program& main, const GradientNames& gradients, const OptimizerConfig& config) {
               auto clipped = gradients_of(gradients);
               engine::append_clip(main, clipped, config);
               return names_of(clipped);
             });
  module.def("append_updates", [](engine::Program& main, engine::Program& startup,
                                  const GradientNames& gradients, const OptimizerConfig& config) {
    for (const auto& gradient : gradients_of(gradients))
      engine::append_update(main, startup, gradient, config);
  });
}

/// A step runner with the tensors that were fed to it last, and everything it needs alive.
class FedStepRunner {
 public:
  FedStepRunner(ProgramPtr program, ScopePtr scope, PlanPtr plan, ClientPtr client, const std::string& mode,
                const std::shared_ptr<Timeline>& timeline)
      : program_(std::move(program)),
        scope_(std::move(scope)),
        plan_(std::move(plan)),
        client_(std::move(client)),
        runner_(*program_, *scope_, *plan_, client_.get(), ps::mode_of(mode), Track(timeline, "thread 0")) {
    if (checks_values()) runner_.expect_finite();
  }

  ArrayFeed& feed() { return feed_; }
  runtime::StepRunner& runner() { return runner_; }
  bool may_block() const { return client_ != nullptr; }

 private:
  ProgramPtr program_;
  ScopePtr scope_;
  PlanPtr plan_;
  ClientPtr client_;
  runtime::StepRunner runner_;
  ArrayFeed feed_;
};

void run_step(const std::shared_ptr<FedStepRunner>& self, const ArrayFeed::Arrays& arrays) {
  const ArrayFeed::Tensors tensors = self->feed().take(arrays);
  if (self->may_block()) {
    run_interruptibly([self, tensors] { self->runner().run(tensors); });
  } else {
    const WithoutGil released;
    self->runner().run(tensors);
  }
}

std::int64_t trainer_rank(const Environ& environ) {
  return parse_integer(environ.value_or("PADDLE_TRAINER_ID", "0")).value_or(0);
}

void bind_step_runner(nb::module_& module) {
  nb::class_<Timeline>(module, "Timeline").def("close", &Timeline::close);
  module.def("step_timeline", [] {
    const Environ environ = Environ::of_process();
    return timeline_of(environ, "trainer", trainer_rank(environ), "steps");
  });
  nb::class_<FedStepRunner>(module, "StepRunner")
      .def(make<FedStepRunner, ProgramPtr, ScopePtr, PlanPtr, ClientPtr, const std::string&,
                const std::shared_ptr<Timeline>&>(),
           "program"_a, "scope"_a, "plan"_a, "client"_a.none(), "mode"_a, "timeline"_a = nb::none())
      .def("run", run_step, "feed"_a, "A step with {name: array}. Throws: as Executor.run, Error(network).")
      .def(
          "value",
          [](FedStepRunner& self, const std::string& name) {
            return value_of(self.runner().tensor(name), name);
          },
          "name"_a, "A copy of a variable's value after the last step.")
      .def(
          "end_pass",
          [](std::shared_ptr<FedStepRunner> self) {
            run_interruptibly([self] { self->runner().end_epoch(); });
          },
          "Ends the pass that the first step began.");
}

/// Calls back into Python from a trainer thread. A failing print (a closed pipe) does not end the training.
std::function<void(const std::string&)> printer(const nb::callable& print_line) {
  return [print = kept(print_line)](const std::string& line) {
    const WithGil held;
    try {
      (*print)(line);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("printing a line of a pass");
    }
  };
}

/// What fleetrun-environment(7) says about FLEETRUN_PASSES_OFF, FLEETRUN_TRACE,
/// FLEETRUN_EVENTS and FLAGS_check_nan_inf.
void apply_environment(runtime::EpochOptions& options) {
  const Environ environ = Environ::of_process();
  for (const std::string& name : split(environ.value_or("FLEETRUN_PASSES_OFF", ""), ',')) {
    if (!name.empty()) options.passes_off.insert(name);
  }
  options.check_nan = checks_values();
  const std::int64_t rank = trainer_rank(environ);
  options.timeline = timeline_of(environ, "trainer", rank, "pass");
  const std::string events = environ.value_or("FLEETRUN_EVENTS", "");
  if (!events.empty()) options.events = std::make_shared<runtime::EventFile>(events, rank);
}

EpochResult run_epoch(ProgramPtr program, ScopePtr scope, std::shared_ptr<BatchSource> dataset, PlanPtr plan,
                      ClientPtr client, std::vector<std::string> fetch, std::vector<std::string> fetch_info,
                      std::int64_t print_period, bool train, const std::string& mode,
                      const nb::callable& print_line, std::uint32_t pull_dense_every, bool debug,
                      std::uint64_t part) {
  runtime::EpochOptions options =
      epoch_options(std::move(fetch), std::move(fetch_info), print_period, print_line);
  options.train = train;
  if (!train) options.events = nullptr;
  options.mode = ps::mode_of(mode);
  options.part = part;
  options.pull_dense_every = pull_dense_every;
  options.time_operators = debug;
  const auto result = std::make_shared<EpochResult>();
  run_interruptibly(
      [=] { *result = runtime::run_epoch(*program, *scope, *dataset, *plan, client.get(), options); },
      [dataset] { dataset->stop(); });
  return *result;
}

}  // namespace

bool checks_values() {
  const std::string flag = Environ::of_process().value_or("FLAGS_check_nan_inf", "");
  return flag == "1" || flag == "true" || flag == "True";
}

runtime::EpochOptions epoch_options(std::vector<std::string> fetch, std::vector<std::string> fetch_info,
                                    std::int64_t print_period, const nb::callable& print_line) {
  runtime::EpochOptions options;
  options.fetch = std::move(fetch);
  options.fetch_info = std::move(fetch_info);
  options.print_period = print_period;
  options.print = printer(print_line);
  apply_environment(options);
  const auto heartbeat = std::make_shared<runtime::Heartbeat>(Environ::of_process());
  if (heartbeat->is_heard()) {
    options.on_batch = [heartbeat](std::size_t examples) { heartbeat->trained(examples); };
    options.on_event = [heartbeat](const runtime::TrainingEvent& event) { heartbeat->report(event); };
  }
  return options;
}

void bind_training(nb::module_& module) {
  bind_plan(module);
  bind_step_runner(module);
  nb::class_<EpochResult>(module, "PassResult", "What a pass over a dataset did.")
      .def_ro("examples", &EpochResult::examples)
      .def_ro("batches", &EpochResult::batches)
      .def_ro("skipped", &EpochResult::skipped)
      .def_ro("skipped_whole", &EpochResult::skipped_whole)
      .def_ro("seconds", &EpochResult::seconds, "From the first batch that was asked for to the end.")
      .def_ro("fetch_means", &EpochResult::fetch_means)
      .def_prop_ro("bound", [](const EpochResult& self) { return runtime::bound_of(self.stages); })
      .def_prop_ro("stage_seconds",
                   [](const EpochResult& self) {
                     nb::dict out;
                     for (std::size_t i = 0; i < runtime::kStages; ++i)
                       out[nb::cast(runtime::to_string(static_cast<runtime::Stage>(i)))] = self.stages[i];
                     return out;
                   })
      .def_prop_ro("operator_table",
                   [](const EpochResult& self) {
                     return self.operators.empty() ? std::string() : runtime::table_of(self.operators);
                   })
      .def_prop_ro("staleness", [](const EpochResult& self) {
        nb::dict out;
        out["pushes"] = self.staleness.pushes;
        out["mean"] = self.staleness.mean();
        out["highest"] = self.staleness.highest;
        return out;
      });
  module.def("run_pass", run_epoch, "program"_a, "scope"_a, "dataset"_a, "plan"_a, "client"_a.none(),
             "fetch"_a, "fetch_info"_a, "print_period"_a, "train"_a, "mode"_a, "print_line"_a,
             "pull_dense_every"_a = 1, "debug"_a = false, "part"_a = 0,
             "A pass of the program over the dataset. Throws: Error(data) naming file, line and slot, "
             "Error(network).");
}

}  // namespace fleetrun::python
