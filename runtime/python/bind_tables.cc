// What a script says about a sparse table: accessor, admission,
// rule and first values instead of the optimizer's.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <iterator>
#include <string>

#include "runtime/base/error.h"
#include "runtime/python/bindings.h"
#include "runtime/trainer/table_choice.h"

namespace fleetrun::python {

namespace {

namespace py = pybind11;
using ps::Accessor;
using ps::Admission;
using ps::Initializer;
using ps::UpdateRule;
using runtime::TableChoice;

/// The kind of this name. Throws: Error(config).
template <class Kind, std::size_t N>
Kind kind_of(const std::array<Kind, N>& kinds, const std::string& name) {
  for (const Kind kind : kinds) {
    if (to_string(kind) == name) return kind;
  }
  throw Error(ErrorKind::config, "a table has no '" + name + "'");
}

/// A property "kind" that is a name in Python.
template <class T, std::size_t N>
void def_kind(py::class_<T>& type, const std::array<decltype(T::kind), N>& kinds) {
  type.def_property(
      "kind", [](const T& self) { return std::string(to_string(self.kind)); },
      [kinds](T& self, const std::string& name) { self.kind = kind_of(kinds, name); });
}

void bind_rule(py::module_& module) {
  py::class_<UpdateRule> rule(module, "UpdateRule",
                              "How a gradient changes a row: ps/table_config.h says which rule has what.");
  rule.def(py::init<>())
      .def_readwrite("learning_rate", &UpdateRule::learning_rate)
      .def_readwrite("beta1", &UpdateRule::beta1)
      .def_readwrite("beta2", &UpdateRule::beta2)
      .def_readwrite("epsilon", &UpdateRule::epsilon)
      .def_readwrite("initial_accumulator", &UpdateRule::initial_accumulator)
      .def_readwrite("low", &UpdateRule::low)
      .def_readwrite("high", &UpdateRule::high);
  std::array<UpdateRule::Kind, std::size(ps::kUpdateRules)> kinds;
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = ps::kUpdateRules[i].kind;
  def_kind(rule, kinds);
}

void bind_accessor(py::module_& module) {
  using enum Accessor::Kind;
  py::class_<Accessor> accessor(module, "Accessor",
                                "What a row keeps beside its values; thresholds are scores, ages are days.");
  accessor.def(py::init<>())
      .def_readwrite("nonclk_coeff", &Accessor::nonclk_coeff)
      .def_readwrite("click_coeff", &Accessor::click_coeff)
      .def_readwrite("embedx_threshold", &Accessor::embedx_threshold)
      .def_readwrite("base_threshold", &Accessor::base_threshold)
      .def_readwrite("delta_threshold", &Accessor::delta_threshold)
      .def_readwrite("delta_keep_days", &Accessor::delta_keep_days)
      .def_readwrite("show_click_decay_rate", &Accessor::show_click_decay_rate)
      .def_readwrite("delete_threshold", &Accessor::delete_threshold)
      .def_readwrite("delete_after_unseen_days", &Accessor::delete_after_unseen_days)
      .def_readwrite("ssd_unseenday_threshold", &Accessor::ssd_unseenday_threshold)
      .def_readwrite("show_scale", &Accessor::show_scale)
      .def_readwrite("zero_init", &Accessor::zero_init)
      .def_readwrite("embed_rule", &Accessor::embed_rule);
  def_kind(accessor, std::array{plain, sparse, ctr});
}

}  // namespace

void bind_tables(py::module_& module) {
  bind_rule(module);
  bind_accessor(module);
  py::class_<Admission> admission(module, "Admission", "When a key gets a row.");
  admission.def(py::init<>())
      .def_readwrite("threshold", &Admission::threshold)
      .def_readwrite("probability", &Admission::probability);
  def_kind(admission, std::array{Admission::Kind::always, Admission::Kind::count,
                                 Admission::Kind::count_bloom, Admission::Kind::probability});
  py::class_<Initializer> initializer(
      module, "Initializer", "First values of a row; a and b are value, bounds, or mean and deviation.");
  initializer.def(py::init<>()).def_readwrite("a", &Initializer::a).def_readwrite("b", &Initializer::b);
  def_kind(initializer, std::array{Initializer::Kind::constant, Initializer::Kind::uniform,
                                   Initializer::Kind::normal, Initializer::Kind::truncated_normal});
  py::class_<TableChoice>(module, "TableChoice",
                          "What a script says of a sparse table, before the optimizer's own rule.")
      .def(py::init<>())
      .def_readwrite("accessor", &TableChoice::accessor)
      .def_readwrite("admission", &TableChoice::admission)
      .def_readwrite("on_disk", &TableChoice::on_disk)
      .def_readwrite("rule", &TableChoice::rule)
      .def_readwrite("initializer", &TableChoice::initializer)
      .def_readwrite("shows", &TableChoice::shows)
      .def_readwrite("clicks", &TableChoice::clicks)
      .def_readwrite("slot", &TableChoice::slot)
      .def_readwrite("times_batch", &TableChoice::times_batch);
}

}  // namespace fleetrun::python
