#include "ps/base/table_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

// The shortest text that reads back as the same number, whatever the locale.
template <class T>
std::string number(T value) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

bool has_betas(UpdateRule::Kind kind) noexcept {
  using enum UpdateRule::Kind;
  return kind == adam || kind == pow_adam || kind == shared_adam || kind == adamax;
}

void check_rule(const UpdateRule& rule, const auto& refuse) {
  using enum UpdateRule::Kind;
  const auto fraction = [](float value) { return value >= 0.0f && value < 1.0f; };
  if (!std::isfinite(rule.learning_rate)) refuse("its learning rate is not a finite number");
  if (has_betas(rule.kind) && !(fraction(rule.beta1) && fraction(rule.beta2))) {
    refuse("beta1=" + number(rule.beta1) + ", beta2=" + number(rule.beta2), "both must be in [0, 1)");
  }
  if ((rule.kind == rmsprop || rule.kind == adadelta) && !fraction(rule.rho)) {
    refuse("rho=" + number(rule.rho), "it must be in [0, 1)");
  }
  if (rule.own_decay != 0.0f && rule.kind != adam) {
    refuse(std::string(to_string(rule.kind)) + " has no own_decay",
           "only adam has one; others have l2_decay");
  }
  if (!std::isfinite(rule.own_decay)) refuse("its own_decay is not a finite number");
  if (!(rule.epsilon >= 0.0f)) refuse("epsilon=" + number(rule.epsilon), "it must not be negative");
  if (!(rule.initial_accumulator >= 0.0f)) {
    refuse("initial_accumulator=" + number(rule.initial_accumulator), "it must not be negative");
  }
  if ((rule.kind == shared_adagrad || rule.kind == std_adagrad) && !(rule.initial_accumulator > 0.0f)) {
    refuse(std::string(to_string(rule.kind)) + " needs an initial_accumulator above 0");
  }
  if (!std::isfinite(rule.momentum)) refuse("its momentum is not a finite number");
  if (rule.kind == ftrl && !(rule.learning_rate > 0.0f)) refuse("ftrl needs a learning rate above 0");
  if (!(rule.l1 >= 0.0f) || !(rule.l2 >= 0.0f)) {
    refuse("l1=" + number(rule.l1) + ", l2=" + number(rule.l2), "neither may be negative");
  }
  if (!std::isfinite(rule.l1_decay) || !std::isfinite(rule.l2_decay))
    refuse("its decay is not a finite number");
  if (rule.kind == ftrl && !(rule.learning_rate_power <= 0.0f)) {
    refuse("learning_rate_power=" + number(rule.learning_rate_power), "it must not be above 0");
  }
  if (!(rule.low <= rule.high)) {
    refuse("its weights are bound to [" + number(rule.low) + ", " + number(rule.high) + "]",
           "the lower bound comes first");
  }
}

// Of sparse tables.
void check_rows(const UpdateRule& rule, const auto& refuse) {
  using enum UpdateRule::Kind;
  if (rule.kind == adam_d2sum || rule.kind == summary)
    refuse(std::string(to_string(rule.kind)) + " is a rule of dense tables");
}

void check_dense(const TableConfig& table, const auto& refuse) {
  using enum UpdateRule::Kind;
  if (table.rule.kind == shared_adagrad || table.rule.kind == shared_adam) {
    refuse("a dense table has no rows that " + std::string(to_string(table.rule.kind)) +
               " could share its state in",
           "use std_adagrad or pow_adam");
  }
  if (table.accessor.kind != Accessor::Kind::plain || table.admission.kind != Admission::Kind::always) {
    refuse("a dense table has no keys to keep statistics of, or to admit");
  }
}

void check_accessor(const Accessor& accessor, const auto& refuse) {
  if (accessor.embed_rule) {
    check_rule(*accessor.embed_rule, refuse);
    check_rows(*accessor.embed_rule, refuse);
    if (accessor.kind == Accessor::Kind::plain) {
      refuse("its first column has a rule of its own, but it keeps no statistics",
             "use the accessor sparse or ctr");
    }
  }
  for (const float value : {accessor.nonclk_coeff, accessor.click_coeff, accessor.show_click_decay_rate,
                            accessor.base_threshold, accessor.delta_threshold, accessor.delta_keep_days,
                            accessor.delete_threshold, accessor.delete_after_unseen_days}) {
    if (!std::isfinite(value)) refuse("its accessor has a parameter that is not a finite number");
  }
  if (std::isnan(accessor.embedx_threshold)) refuse("its embedx_threshold is not a number");
}

void check_table(const TableConfig& table) {
  const auto refuse = [&table](const std::string& what, const std::string& hint = "") {
    throw Error(ErrorKind::config, "table '" + table.name + "': " + what, hint);
  };
  if (table.width == 0) refuse("its width is 0");
  if (table.kind == TableConfig::Kind::sparse && table.width > (1u << 24)) {
    refuse("rows of " + number(table.width) + " floats; at most 16777216 fit");
  }
  check_rule(table.rule, refuse);
  if (table.kind == TableConfig::Kind::dense) {
    check_dense(table, refuse);
  } else {
    check_rows(table.rule, refuse);
    check_accessor(table.accessor, refuse);
  }
  if (!(table.admission.probability >= 0.0 && table.admission.probability <= 1.0)) {
    refuse("an admission probability of " + number(table.admission.probability), "it must be in [0, 1]");
  }
  if (table.clip.is_norm() && !(table.clip.most > 0.0f)) {
    refuse("its gradients are clipped to norm " + number(table.clip.most), "it must be above 0");
  }
  if (table.clip.kind == Clip::Kind::value && !(table.clip.least <= table.clip.most)) {
    refuse("its gradients are cut to [" + number(table.clip.least) + ", " + number(table.clip.most) + "]",
           "the lower bound comes first");
  }
  const Initializer& first = table.initializer;
  if (!std::isfinite(first.a) || !std::isfinite(first.b)) refuse("its initializer is not finite");
}

// "(a=1, b=2)" of what differs from its default, or is always said.
class Fields {
 public:
  template <class T>
  Fields& always(std::string_view name, T value) {
    text_ += (text_.empty() ? "(" : ", ") + std::string(name) + "=" + number(value);
    return *this;
  }
  template <class T>
  Fields& unless(T usual, std::string_view name, T value) {
    return value == usual ? *this : always(name, value);
  }
  std::string text() const { return text_.empty() ? text_ : text_ + ")"; }

 private:
  std::string text_;
};

std::string describe(const UpdateRule& rule) {
  using enum UpdateRule::Kind;
  const UpdateRule usual;
  Fields fields;
  if (rule.kind != sum && rule.kind != summary) fields.always("learning_rate", rule.learning_rate);
  if (rule.kind == adagrad) {
    fields.always("epsilon", rule.epsilon).always("initial_accumulator", rule.initial_accumulator);
  }
  if (rule.kind == shared_adagrad || rule.kind == std_adagrad) {
    fields.always("initial_accumulator", rule.initial_accumulator);
  }
  if (has_betas(rule.kind)) {
    fields.always("beta1", rule.beta1).always("beta2", rule.beta2).always("epsilon", rule.epsilon);
  }
  if (rule.kind == adam_d2sum) fields.always("epsilon", rule.epsilon);
  if (rule.kind == rmsprop || rule.kind == adadelta) {
    fields.always("rho", rule.rho).always("epsilon", rule.epsilon);
  }
  if (rule.kind == rmsprop) {
    fields.always("momentum", rule.momentum).always("centered", static_cast<int>(rule.centered));
  }
  if (rule.kind == momentum) {
    fields.always("momentum", rule.momentum).always("nesterov", static_cast<int>(rule.nesterov));
  }
  if (rule.kind == ftrl) {
    fields.always("l1", rule.l1)
        .always("l2", rule.l2)
        .always("learning_rate_power", rule.learning_rate_power);
    fields.always("initial_accumulator", rule.initial_accumulator);
  }
  fields.unless(usual.l1_decay, "l1_decay", rule.l1_decay).unless(usual.l2_decay, "l2_decay", rule.l2_decay);
  fields.unless(usual.own_decay, "own_decay", rule.own_decay);
  fields.unless(usual.low, "low", rule.low).unless(usual.high, "high", rule.high);
  fields.unless(0, "scheduled", static_cast<int>(rule.is_scheduled));
  return std::string(to_string(rule.kind)) + fields.text();
}

std::string describe(const Accessor& accessor) {
  if (accessor == Accessor{}) return {};
  const Accessor usual;
  Fields fields;
  fields.unless(usual.nonclk_coeff, "nonclk_coeff", accessor.nonclk_coeff)
      .unless(usual.click_coeff, "click_coeff", accessor.click_coeff)
      .unless(usual.embedx_threshold, "embedx_threshold", accessor.embedx_threshold)
      .unless(usual.base_threshold, "base_threshold", accessor.base_threshold)
      .unless(usual.delta_threshold, "delta_threshold", accessor.delta_threshold)
      .unless(usual.delta_keep_days, "delta_keep_days", accessor.delta_keep_days)
      .unless(usual.show_click_decay_rate, "show_click_decay_rate", accessor.show_click_decay_rate)
      .unless(usual.delete_threshold, "delete_threshold", accessor.delete_threshold)
      .unless(usual.delete_after_unseen_days, "delete_after_unseen_days", accessor.delete_after_unseen_days)
      .unless(usual.ssd_unseenday_threshold, "ssd_unseenday_threshold", accessor.ssd_unseenday_threshold)
      .unless(1, "show_scale", static_cast<int>(accessor.show_scale))
      .unless(0, "zero_init", static_cast<int>(accessor.zero_init));
  std::string out = ", accessor " + std::string(to_string(accessor.kind)) + fields.text();
  if (accessor.embed_rule) out += ", first column " + describe(*accessor.embed_rule);
  return out;
}

std::string describe(const Admission& admission) {
  using enum Admission::Kind;
  Fields fields;
  switch (admission.kind) {
    case always:
      return {};
    case count:
    case count_bloom:
      fields.always("threshold", admission.threshold);
      break;
    case probability:
      fields.always("probability", admission.probability).always("seed", admission.seed);
      break;
  }
  return ", admitted by " + std::string(to_string(admission.kind)) + fields.text();
}

std::string describe(const Clip& clip) {
  switch (clip.kind) {
    case Clip::Kind::none:
      break;
    case Clip::Kind::value:
      return ", gradients cut to [" + number(clip.least) + ", " + number(clip.most) + "]";
    case Clip::Kind::norm:
      return ", gradients of norm " + number(clip.most) + " at most";
    case Clip::Kind::global_norm:
      return ", gradients of global norm " + number(clip.most) + " at most";
  }
  return {};
}

std::string describe(const Initializer& initializer) {
  std::string out(to_string(initializer.kind));
  out += '(';
  out += number(initializer.a);
  if (initializer.kind != Initializer::Kind::constant) {
    out += ", " + number(initializer.b) + ", seed=" + number(initializer.seed);
  }
  return out += ')';
}

}  // namespace

static_assert(std::ranges::is_sorted(kUpdateRules, {}, &UpdateRuleRow::kind));

std::string_view to_string(UpdateRule::Kind kind) noexcept {
  return row_of(kind).name;
}

std::string_view to_string(Initializer::Kind kind) noexcept {
  constexpr std::array<std::string_view, 4> names = {"constant", "uniform", "normal", "truncated_normal"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(TableConfig::Kind kind) noexcept {
  return kind == TableConfig::Kind::dense ? "dense" : "sparse";
}

std::string_view to_string(Accessor::Kind kind) noexcept {
  constexpr std::array<std::string_view, 3> names = {"plain", "sparse", "ctr"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Admission::Kind kind) noexcept {
  constexpr std::array<std::string_view, 4> names = {"always", "count", "count_bloom", "probability"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Mode mode) noexcept {
  constexpr std::array<std::string_view, 4> names = {"async", "sync", "half_async", "geo"};
  return names[static_cast<std::size_t>(mode)];
}

Mode mode_of(std::string_view name) {
  for (const Mode mode : {Mode::async, Mode::sync, Mode::half_async, Mode::geo}) {
    if (to_string(mode) == name) return mode;
  }
  throw Error(ErrorKind::config, "there is no mode '" + std::string(name) + "'",
              "use async, sync, half_async or geo");
}

std::string describe(const TableConfig& table) {
  std::string out(to_string(table.kind));
  out += " table " + number(table.id) + " '" + table.name + "' of width " + number(table.width) + ", " +
         describe(table.rule);
  if (table.kind == TableConfig::Kind::sparse) {
    out += ", " + describe(table.initializer) + describe(table.accessor) + describe(table.admission);
    if (table.on_disk) out += ", on disk";
    if (table.expire_seconds != 0) out += ", rows expire after " + number(table.expire_seconds) + " s";
  } else if (table.min_block != 0) {
    out += ", blocks of at least " + number(table.min_block);
  }
  return out + describe(table.clip);
}

void check_tables(const std::vector<TableConfig>& tables) {
  std::set<std::uint32_t> ids;
  std::set<std::string_view> names;
  for (const TableConfig& table : tables) {
    check_table(table);
    if (!ids.insert(table.id).second) {
      throw Error(ErrorKind::config, "two tables have the id " + number(table.id));
    }
    if (!names.insert(table.name).second) {
      throw Error(ErrorKind::config, "two tables have the name '" + table.name + "'");
    }
  }
}

}  // namespace fleetrun::ps
