// What a script says about a sparse table: accessor, admission,
// rule and first values instead of the optimizer's.

#include <array>
#include <iterator>
#include <string>

#include "runtime/base/error.h"
#include "runtime/python/bindings.h"
#include "runtime/trainer/table_choice.h"

namespace fleetrun::python {

namespace {

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
void def_kind(nb::class_<T>& type, const std::array<decltype(T::kind), N>& kinds) {
  type.def_prop_rw(
      "kind", [](const T& self) { return std::string(to_string(self.kind)); },
      [kinds](T& self, const std::string& name) { self.kind = kind_of(kinds, name); });
}

void bind_rule(nb::module_& module) {
  nb::class_<UpdateRule> rule(module, "UpdateRule",
                              "How a gradient changes a row: ps/table_config.h says which rule has what.");
  rule.def(nb::init<>())
      .def_rw("learning_rate", &UpdateRule::learning_rate)
      .def_rw("beta1", &UpdateRule::beta1)
      .def_rw("beta2", &UpdateRule::beta2)
      .def_rw("epsilon", &UpdateRule::epsilon)
      .def_rw("initial_accumulator", &UpdateRule::initial_accumulator)
      .def_rw("low", &UpdateRule::low)
      .def_rw("high", &UpdateRule::high);
  std::array<UpdateRule::Kind, std::size(ps::kUpdateRules)> kinds;
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = ps::kUpdateRules[i].kind;
  def_kind(rule, kinds);
}

void bind_accessor(nb::module_& module) {
  using enum Accessor::Kind;
  nb::class_<Accessor> accessor(module, "Accessor",
                                "What a row keeps beside its values; thresholds are scores, ages are days.");
  accessor.def(nb::init<>())
      .def_rw("nonclk_coeff", &Accessor::nonclk_coeff)
      .def_rw("click_coeff", &Accessor::click_coeff)
      .def_rw("embedx_threshold", &Accessor::embedx_threshold)
      .def_rw("base_threshold", &Accessor::base_threshold)
      .def_rw("delta_threshold", &Accessor::delta_threshold)
      .def_rw("delta_keep_days", &Accessor::delta_keep_days)
      .def_rw("show_click_decay_rate", &Accessor::show_click_decay_rate)
      .def_rw("delete_threshold", &Accessor::delete_threshold)
      .def_rw("delete_after_unseen_days", &Accessor::delete_after_unseen_days)
      .def_rw("ssd_unseenday_threshold", &Accessor::ssd_unseenday_threshold)
      .def_rw("show_scale", &Accessor::show_scale)
      .def_rw("zero_init", &Accessor::zero_init)
      .def_rw("embed_rule", &Accessor::embed_rule);
  def_kind(accessor, std::array{plain, sparse, ctr});
}

}  // namespace

void bind_tables(nb::module_& module) {
  bind_rule(module);
  bind_accessor(module);
  nb::class_<Admission> admission(module, "Admission", "When a key gets a row.");
  admission.def(nb::init<>())
      .def_rw("threshold", &Admission::threshold)
      .def_rw("probability", &Admission::probability);
  def_kind(admission, std::array{Admission::Kind::always, Admission::Kind::count,
                                 Admission::Kind::count_bloom, Admission::Kind::probability});
  nb::class_<Initializer> initializer(
      module, "Initializer", "First values of a row; a and b are value, bounds, or mean and deviation.");
  initializer.def(nb::init<>()).def_rw("a", &Initializer::a).def_rw("b", &Initializer::b);
  def_kind(initializer, std::array{Initializer::Kind::constant, Initializer::Kind::uniform,
                                   Initializer::Kind::normal, Initializer::Kind::truncated_normal});
  nb::class_<TableChoice>(module, "TableChoice",
                          "What a script says of a sparse table, before the optimizer's own rule.")
      .def(nb::init<>())
      .def_rw("accessor", &TableChoice::accessor)
      .def_rw("admission", &TableChoice::admission)
      .def_rw("on_disk", &TableChoice::on_disk)
      .def_rw("rule", &TableChoice::rule)
      .def_rw("initializer", &TableChoice::initializer)
      .def_rw("shows", &TableChoice::shows)
      .def_rw("clicks", &TableChoice::clicks)
      .def_rw("slot", &TableChoice::slot)
      .def_rw("times_batch", &TableChoice::times_batch);
}

}  // namespace fleetrun::python
