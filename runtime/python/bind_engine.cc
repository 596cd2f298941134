// Programs, scopes, and the executor of a program without tables.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/engine/executor.h"
#include "runtime/engine/failed_step.h"
#include "runtime/engine/infer_again.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/callbacks.h"
#include "runtime/engine/program.h"
#include "runtime/engine/program_text.h"
#include "runtime/python/array_feed.h"
#include "runtime/python/bindings.h"
#include "runtime/python/epoch_options.h"
#include "runtime/python/without_gil.h"

namespace fleetrun::python {

namespace {

using engine::Operator;
using engine::Program;
using engine::Scope;
using engine::Variable;

void add_variable(Program& program, std::string name, const std::string& type, engine::Shape shape,
                  int lod_level, bool persistable, bool trainable, bool stop_gradient, bool is_data) {
  program.add_variable({std::move(name), engine::parse_data_type(type), std::move(shape), lod_level,
                        persistable, trainable, stop_gradient, is_data});
}

std::vector<std::string> variable_names(const Program& program) {
  std::vector<std::string> names;
  for (const auto& [name, variable] : program.variables()) names.push_back(name);
  return names;
}

/// Copies an array, or a LoDTensor: an array with what begins where in it.
void put(engine::Tensor& tensor, const nb::object& array) {
  const bool has_offsets = nb::hasattr(array, "lod_offsets");
  const nb::object values = has_offsets ? nb::object(array.attr("array")) : array;
  Buffer lent;
  if (!lent.take(values)) {
    const std::string type = nb::cast<std::string>(nb::object(values.type().attr("__name__")));
    throw Error(ErrorKind::config, "a " + type + " is no array", "give it as numpy.asarray() has it");
  }
  assign(tensor, lent);
  tensor.offsets.clear();
  if (has_offsets) tensor.offsets = nb::cast<std::vector<std::size_t>>(array.attr("lod_offsets"));
}

bool has_operator(const Program& program, const std::string& type) {
  return std::ranges::any_of(program.operators(), [&](const Operator& op) { return op.type == type; });
}

void bind_program(nb::module_& module) {
  nb::class_<Variable>(module, "Variable", "A variable of a Program, as it was when it was asked for.")
      .def_ro("name", &Variable::name)
      .def_prop_ro("type", [](const Variable& self) { return std::string(to_string(self.type)); })
      .def_ro("shape", &Variable::shape, "Sizes; -1 for one that is known only when the program runs.")
      .def_ro("lod_level", &Variable::lod_level,
              "1 for a slot with any number of values per example, else 0.")
      .def_ro("persistable", &Variable::persistable)
      .def_ro("trainable", &Variable::trainable)
      .def_ro("stop_gradient", &Variable::stop_gradient)
      .def_ro("is_data", &Variable::is_data);
  nb::class_<Operator>(module, "Operator",
                       "An operator of a Program. where: the line of the script that appended it.")
      .def_ro("type", &Operator::type)
      .def_ro("inputs", &Operator::inputs)
      .def_ro("outputs", &Operator::outputs)
      .def_ro("input_arg_names", &Operator::inputs, "Paddle's name for inputs.")
      .def_ro("output_arg_names", &Operator::outputs, "Paddle's name for outputs.")
      .def_ro("attributes", &Operator::attributes)
      .def_prop_ro(
          "attr_names",
          [](const Operator& self) {
            std::vector<std::string> names;
            for (const auto& [name, value] : self.attributes) names.push_back(name);
            return names;
          },
          "The names of the attributes.")
      .def(
          "all_attrs", [](const Operator& self) { return self.attributes; }, "Paddle's name for attributes.")
      .def(
          "has_attr",
          [](const Operator& self, const std::string& name) { return self.attributes.contains(name); },
          "name"_a, "Whether there is an attribute of this name.")
      .def(
          "attr", [](const Operator& self, const std::string& name) { return self.attributes.at(name); },
          "name"_a, "An attribute. Throws: IndexError where there is none.")
      .def_ro("where", &Operator::where);
  nb::class_<Program>(module, "Program", "Variables and operators in order.")
      .def(make<Program>())
      .def_rw("random_seed", &Program::random_seed)
      .def(
          "copy", [](const Program& self) { return std::make_shared<Program>(self); },
          "Another program that is equal.")
      .def(
          "clone_for_test",
          [](const Program& self) { return std::make_shared<Program>(engine::clone_for_test(self)); },
          "A copy without gradients and updates, and without dropout.")
      .def("add_variable", add_variable, "name"_a, "type"_a, "shape"_a, "lod_level"_a = 0,
           "persistable"_a = false, "trainable"_a = false, "stop_gradient"_a = true, "is_data"_a = false,
           "Adds a variable. Throws: Error(config) for an unknown type, or a name that another variable has.")
      .def(
          "take_as_input", [](Program& self, const std::string& name) { self.variable(name).is_data = true; },
          "name"_a,
          "From now on the variable of this name is fed. Throws: Error(config) naming the nearest one.")
      .def(
          "variable", [](const Program& self, const std::string& name) { return self.variable(name); },
          "name"_a, "The variable of this name. Throws: Error(config) naming the nearest one.")
      .def(
          "move_last",
          [](Program& self, std::size_t count, std::size_t to) {
            std::vector<Operator>& all = self.operators();
            const auto last = all.end() - static_cast<std::ptrdiff_t>(std::min(count, all.size()));
            std::rotate(std::min(all.begin() + static_cast<std::ptrdiff_t>(to), last), last, all.end());
          },
          "count"_a, "to"_a, "Puts the last `count` operators before the one of index `to`.")
      .def("has_variable", &Program::has_variable, "name"_a, "Whether there is a variable of this name.")
      .def("variable_names", variable_names, "The names of all variables, sorted.")
      .def(
          "set_stop_gradient",
          [](Program& self, const std::string& name, bool stop) { self.variable(name).stop_gradient = stop; },
          "name"_a, "stop"_a,
          "Says whether gradients end at a variable. Throws: Error(config) for an unknown one.")
      .def(
          "infer_again", engine::infer_again,
          "Infers types and shapes of all operators once more. Throws: Error(config) of one that cannot take "
          "its inputs.")
      .def(
          "set_persistable",
          [](Program& self, const std::string& name, bool keep) { self.variable(name).persistable = keep; },
          "name"_a, "keep"_a,
          "Says whether a variable is kept from run to run. Throws: Error(config) for an unknown one.")
      .def(
          "set_shape",
          [](Program& self, const std::string& name, const engine::Shape& shape) {
            self.variable(name).shape = shape;
          },
          "name"_a, "shape"_a,
          "Gives a variable another shape, -1 for every size. Throws: Error(config) for an unknown one.")
      .def(
          "set_type",
          [](Program& self, const std::string& name, const std::string& type) {
            self.variable(name).type = engine::parse_data_type(type);
          },
          "name"_a, "type"_a, "Gives a variable another type. Throws: Error(config) for an unknown one.")
      .def(
          "set_trainable",
          [](Program& self, const std::string& name, bool trainable) {
            self.variable(name).trainable = trainable;
          },
          "name"_a, "trainable"_a,
          "Says whether optimizers update a parameter. Throws: Error(config) for an unknown one.")
      .def(
          "append",
          [](Program& self, std::string type, std::vector<std::string> inputs,
             std::vector<std::string> outputs, std::map<std::string, engine::Attribute> attributes,
             std::string where) {
            Operator op{std::move(type), std::move(inputs), std::move(outputs), std::move(attributes),
                        std::move(where)};
            engine::check_from_outside(self, op);
            self.append(std::move(op));
          },
          "type"_a, "inputs"_a, "outputs"_a, "attributes"_a, "where"_a = "",
          "Appends an operator; outputs that are not there are made, with their shapes. Throws: "
          "Error(config) naming the "
          "operator, its line and what disagrees.")
      .def(
          "operators", [](const Program& self) { return self.operators(); },
          "Copies of all operators, in order.")
      .def(
          "operator_count", [](const Program& self) { return self.operators().size(); },
          "How many operators.")
      .def("has_operator", has_operator, "type"_a, "Whether there is an operator of this type.")
      .def("to_words", &engine::to_words, "The program as the body of a loop.")
      .def(
          "to_dot", [](const Program& self) { return to_dot(self); }, "The program for graphviz.")
      .def("__str__", [](const Program& self) { return to_string(self); });
}

std::shared_ptr<engine::Tensor> scope_value(const Scope& scope, const std::string& name) {
  const engine::Tensor* tensor = scope.find(name);
  if (tensor == nullptr) {
    throw Error(ErrorKind::config, "the scope has no value called " + name, "run the start-up program first");
  }
  return value_of(*tensor, name);
}

void bind_scope(nb::module_& module) {
  nb::class_<Scope>(module, "Scope", "Values by name.")
      .def(make<Scope>())
      .def(
          "has", [](const Scope& self, const std::string& name) { return self.find(name) != nullptr; },
          "name"_a, "Whether there is a value of this name.")
      .def(
          "make", [](Scope& self, const std::string& name) { self.tensor(name); }, "name"_a,
          "Makes an empty value where there is none.")
      .def("names", &Scope::names, "The names of all values, sorted.")
      .def("value", scope_value, "name"_a, "A copy of the value. Throws: Error(config) where there is none.")
      .def(
          "set_value",
          [](Scope& self, const std::string& name, const Buffer& value) { assign(self.tensor(name), value); },
          "name"_a, "value"_a,
          "Copies a C-contiguous array in; shape and type become the array's. Throws: Error(config) for a "
          "type that the "
          "engine does not have.");
}

/// A function of Python that operators call: function([array or None, …]) -> [array or None, …], one for each
/// output.
std::int64_t keep_function(nb::callable function) {
  // Never let go of: the function may be called until the process ends.
  auto* kept = new nb::callable(std::move(function));
  return engine::keep_callback(
      [kept](std::span<const engine::Tensor* const> inputs, std::span<engine::Tensor* const> outputs) {
        const WithGil held;
        nb::list given;
        for (const engine::Tensor* input : inputs) {
          if (input == nullptr) given.append(nb::none());
          if (input != nullptr) given.append(copy_of(*input));
        }
        const auto made = nb::cast<std::vector<nb::object>>((*kept)(given));
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          if (outputs[i] == nullptr) continue;
          if (i >= made.size() || made[i].is_none()) {
            throw Error(ErrorKind::config, "a function of the script gave no value " + std::to_string(i));
          }
          put(*outputs[i], made[i]);
        }
      });
}

/// An executor with the tensors that were fed to it last.
class FedExecutor {
 public:
  FedExecutor(const Program& program, Scope& scope)
      : executor_(program, scope), keeper_(program, nullptr, executor_) {
    engine::check_values_are_made(program);
    if (checks_) keeper_.expect_finite();
  }

  void run(const ArrayFeed::Arrays& arrays) {
    const ArrayFeed::Tensors tensors = feed_.take(arrays);
    const WithoutGil released;
    ++runs_;
    const auto which = [this] { return "run " + std::to_string(runs_); };
    keeper_.watch(tensors, which, [&] {
      if (!checks_) return executor_.run(tensors);
      executor_.run(tensors, [&](const Operator& op, double) { executor_.expect_finite(op, which); });
    });
  }
  std::shared_ptr<engine::Tensor> value(const std::string& name) const {
    return value_of(executor_.tensor(name), name);
  }

 private:
  engine::Executor executor_;
  engine::StepKeeper keeper_;
  ArrayFeed feed_;
  const bool checks_ = checks_values();
  std::uint64_t runs_ = 0;
};

}  // namespace

ArrayFeed::Tensors ArrayFeed::take(const ArrayFeed::Arrays& arrays) {
  Tensors tensors;
  for (const auto& [name, array] : arrays) {
    engine::Tensor& tensor = storage_[name];
    while_doing("feeding '" + name + "'", [&] { put(tensor, array); });
    tensors[name] = &tensor;
  }
  return tensors;
}

void bind_engine(nb::module_& module) {
  bind_program(module);
  bind_scope(module);
  module.def("keep_function", keep_function, "function"_a,
             "Keeps a function for operators that call it, until the process ends. Returns its number.");
  nb::class_<FedExecutor>(module, "Executor", "Runs a program without tables over a scope.")
      .def(nb::init<const Program&, Scope&>(), "program"_a, "scope"_a, nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>())
      .def("run", &FedExecutor::run, "feed"_a,
           "One run with {name: array}; an object with lod_offsets is a slot. Throws: Error(config) naming "
           "an input that is "
           "missing or disagrees with its variable.")
      .def("value", &FedExecutor::value, "name"_a, "A copy of a variable's value after the last run.");
}

}  // namespace fleetrun::python
