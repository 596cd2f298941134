#include "runtime/trainer/table_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"

namespace fleetrun::runtime {

namespace {

using engine::attribute;
using engine::Operator;
using engine::OptimizerConfig;
using engine::Program;

/// Parameters whose every use is a lookup that asks for rows.
std::set<std::string> row_parameters(const Program& program) {
  std::set<std::string> by_rows, otherwise;
  for (const Operator& op : program.operators()) {
    const bool lookup = op.type == "embedding" && attribute(op, "is_sparse", false);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      (lookup && i == 0 ? by_rows : otherwise).insert(op.inputs[i]);
    }
  }
  for (const std::string& name : otherwise) by_rows.erase(name);
  std::erase_if(by_rows, [&program](const std::string& name) { return !program.variable(name).trainable; });
  return by_rows;
}

/// embedding(W, ids) with is_sparse becomes sparse_embedding(ids) of parameter W.
void move_lookups_to_servers(Program& program) {
  const auto parameters = row_parameters(program);
  for (Operator& op : program.operators()) {
    if (op.type != "embedding" || !parameters.contains(op.inputs[0])) continue;
    const std::string parameter = op.inputs[0];
    const std::int64_t width = program.variable(parameter).shape.back();
    op.attributes = {{"parameter", parameter},
                     {"width", width},
                     {"padding_idx", attribute(op, "padding_idx", std::int64_t{-1})}};
    op.type = "sparse_embedding";
    op.inputs = {op.inputs[1]};
  }
}

/// Parameter to width of every sparse_embedding.
std::map<std::string, std::uint64_t> sparse_parameters(const Program& program) {
  std::map<std::string, std::uint64_t> widths;
  for (const Operator& op : program.operators()) {
    if (op.type != "sparse_embedding") continue;
    widths[attribute<std::string>(op, "parameter")] =
        static_cast<std::uint64_t>(attribute<std::int64_t>(op, "width"));
  }
  return widths;
}

/// Paddle's, whatever the optimizer's epsilon.
constexpr float kD2sumEpsilon = 1e-8f;

ps::UpdateRule::Kind kind_of(OptimizerConfig::Kind kind) {
  switch (kind) {
    case OptimizerConfig::Kind::sgd:
      return ps::UpdateRule::Kind::sgd;
    case OptimizerConfig::Kind::adagrad:
      return ps::UpdateRule::Kind::adagrad;
    case OptimizerConfig::Kind::adam:
      return ps::UpdateRule::Kind::adam;
    case OptimizerConfig::Kind::momentum:
      return ps::UpdateRule::Kind::momentum;
    case OptimizerConfig::Kind::ftrl:
      return ps::UpdateRule::Kind::ftrl;
    case OptimizerConfig::Kind::rmsprop:
      return ps::UpdateRule::Kind::rmsprop;
    case OptimizerConfig::Kind::adamax:
      return ps::UpdateRule::Kind::adamax;
    case OptimizerConfig::Kind::adadelta:
      return ps::UpdateRule::Kind::adadelta;
    case OptimizerConfig::Kind::decayed_adagrad:
      throw Error(ErrorKind::config, "no table is trained by decayed_adagrad",
                  "use RMSProp, which keeps the same mean, or train in one process or with collectives");
    case OptimizerConfig::Kind::lamb:
    case OptimizerConfig::Kind::lars_momentum:
      break;
  }
  throw Error(ErrorKind::config,
              "no table is trained by " + std::string(to_string(kind)) +
                  ": its step needs the norm of a whole parameter, which lies in parts on servers",
              "use AdamW, or train in one process or with collectives");
}

ps::UpdateRule rule_of(const OptimizerConfig& shared, const std::string& parameter,
                       ps::TableConfig::Kind table) {
  const OptimizerConfig config = engine::config_of(shared, parameter);
  ps::UpdateRule rule;
  rule.kind = kind_of(config.kind);
  if (rule.kind == ps::UpdateRule::Kind::adam && config.older_formula) {
    rule.kind = ps::UpdateRule::Kind::pow_adam;
  }
  rule.learning_rate = static_cast<float>(config.learning_rate);
  rule.beta1 = static_cast<float>(config.beta1);
  rule.beta2 = static_cast<float>(config.beta2);
  rule.epsilon = static_cast<float>(config.epsilon);
  rule.initial_accumulator = static_cast<float>(config.initial_accumulator);
  rule.momentum = static_cast<float>(config.momentum);
  rule.nesterov = config.nesterov;
  rule.rho = static_cast<float>(config.rho);
  rule.centered = config.centered;
  rule.l1 = static_cast<float>(config.l1);
  rule.l2 = static_cast<float>(config.l2);
  rule.learning_rate_power = static_cast<float>(config.learning_rate_power);
  rule.l1_decay = static_cast<float>(config.l1_decay);
  rule.l2_decay = static_cast<float>(config.l2_decay);
  rule.own_decay = static_cast<float>(config.own_decay);
  rule.is_scheduled = !config.rate.empty();
  if (config.adam_d2sum && table == ps::TableConfig::Kind::dense) {
    rule.kind = ps::UpdateRule::Kind::adam_d2sum;
    rule.epsilon = kD2sumEpsilon;
  }
  return rule;
}

/// What servers do to the mean gradient of a parameter.
ps::Clip clip_of(const OptimizerConfig& config, const std::string& parameter) {
  const auto own = config.own.find(parameter);
  if (own != config.own.end() && !own->second.is_clipped) return {};
  ps::Clip clip;
  clip.least = static_cast<float>(config.clip_least);
  clip.most = static_cast<float>(config.clip);
  switch (config.clip_kind) {
    case OptimizerConfig::Clip::none:
      return {};
    case OptimizerConfig::Clip::value:
      clip.kind = ps::Clip::Kind::value;
      break;
    case OptimizerConfig::Clip::norm:
      clip.kind = ps::Clip::Kind::norm;
      break;
    case OptimizerConfig::Clip::global_norm:
      clip.kind = ps::Clip::Kind::global_norm;
      break;
  }
  return clip;
}

/// The sums of data_norm, to which a batch adds what stands for their gradients.
std::set<std::string> summaries_of(const Program& main) {
  std::set<std::string> names;
  for (const Operator& op : main.operators()) {
    if (op.type == "data_norm") names.insert(op.inputs.begin() + 1, op.inputs.begin() + 4);
  }
  return names;
}

ps::Initializer initializer_of(const Operator& op, std::uint64_t program_seed) {
  ps::Initializer initializer;
  const auto seed = static_cast<std::uint64_t>(attribute(op, "seed", std::int64_t{0}));
  initializer.seed = seed != 0 ? seed : program_seed;
  const auto set = [&](ps::Initializer::Kind kind, double a, double b) {
    initializer.kind = kind;
    initializer.a = a;
    initializer.b = b;
    return initializer;
  };
  if (op.type == "fill_constant") {
    return set(ps::Initializer::Kind::constant, attribute(op, "value", 0.0), 0.0);
  }
  if (op.type == "uniform_random") {
    return set(ps::Initializer::Kind::uniform, attribute(op, "min", -1.0), attribute(op, "max", 1.0));
  }
  const double mean = attribute(op, "mean", 0.0), deviation = attribute(op, "std", 1.0);
  if (op.type == "gaussian_random") return set(ps::Initializer::Kind::normal, mean, deviation);
  if (op.type == "truncated_gaussian_random") {
    return set(ps::Initializer::Kind::truncated_normal, mean, deviation);
  }
  throw Error(ErrorKind::config,
              "sparse parameter '" + op.outputs[0] + "' is initialized by " + op.type +
                  ", which a table cannot do row by row",
              "use Constant, Uniform, Normal, TruncatedNormal, Xavier or Kaiming");
}

/// Takes the operator that fills `parameter` out of the startup program, or what another plan took before.
ps::Initializer take_initializer(Program& startup, const std::string& parameter,
                                 const std::vector<TablePlan*>& others) {
  auto& operators = startup.operators();
  for (auto op = operators.begin(); op != operators.end(); ++op) {
    if (op->outputs != std::vector<std::string>{parameter}) continue;
    const ps::Initializer initializer = initializer_of(*op, startup.random_seed);
    operators.erase(op);
    return initializer;
  }
  for (const TablePlan* other : others) {
    for (const TablePlan::Entry& entry : other->entries) {
      if (entry.parameter == parameter) return entry.table.initializer;
    }
  }
  throw Error(ErrorKind::config, "the startup program has no initial values for '" + parameter + "'",
              "append an initializer for it");
}

/// Columns of statistics that a pull of this accessor returns before the values.
std::uint64_t statistics_columns(const ps::Accessor& accessor) {
  return accessor.kind == ps::Accessor::Kind::ctr ? 2 : 0;
}

void check_choices(const Program& main, const TableChoices& choices,
                   const std::map<std::string, std::uint64_t>& sparse) {
  for (const auto& [parameter, choice] : choices) {
    const auto found = sparse.find(parameter);
    if (found == sparse.end()) {
      throw Error(ErrorKind::config,
                  "a table is configured for '" + parameter + "', which no sparse_embedding looks up",
                  "name the parameter: param_attr=ParamAttr(name=\"" + parameter + "\")");
    }
    if (found->second <= statistics_columns(choice.accessor)) {
      throw Error(ErrorKind::config,
                  "sparse parameter '" + parameter + "' has rows of " + std::to_string(found->second) +
                      ", and its accessor puts show and click before the values",
                  "give sparse_embedding a size of [any, 2 + values]");
    }
    for (const std::string& name : {choice.shows, choice.clicks}) {
      if (name.empty()) continue;
      // Of sequences the step itself sees whether each has one value.
      const engine::Shape& shape = main.variable(name).shape;
      if (shape.size() > 1 &&
          std::any_of(shape.begin() + 1, shape.end(), [](auto size) { return size > 1; })) {
        throw Error(ErrorKind::config,
                    "'" + name + "' of a ShowClickEntry has not one value for each example",
                    "give it the shape [None, 1]");
      }
    }
  }
}

/// Tells the lookups of `choices` what their gradients are for; before the backward operators.
void mark_lookups(Program& main, const TableChoices& choices) {
  for (Operator& op : main.operators()) {
    if (op.type != "sparse_embedding") continue;
    const auto found = choices.find(attribute<std::string>(op, "parameter"));
    if (found == choices.end()) continue;
    op.attributes["statistics"] = static_cast<std::int64_t>(statistics_columns(found->second.accessor));
    op.attributes["times_batch"] = found->second.times_batch;
  }
}

void take_choice(ps::TableConfig& table, const TableChoice& choice) {
  table.width -= statistics_columns(choice.accessor);
  table.accessor = choice.accessor;
  table.on_disk = choice.on_disk;
  const std::uint64_t seed = table.initializer.seed;
  if (choice.rule) {
    // Column 0 is the optimizer's, unless it has a rule of its own.
    if (table.accessor.kind != ps::Accessor::Kind::plain && !table.accessor.embed_rule)
      table.accessor.embed_rule = table.rule;
    table.rule = *choice.rule;
  }
  if (choice.initializer) table.initializer = *choice.initializer;
  table.initializer.seed = seed;
  table.admission = choice.admission;
  if (table.admission.kind == ps::Admission::Kind::probability) table.admission.seed = seed;
}

/// Appends what makes a show and a click for each key of the entry's gradient.
void add_statistics(Program& main, TablePlan::Entry& entry, const TableChoice& choice) {
  entry.slot = choice.slot;
  if (choice.shows.empty() || entry.keys.empty()) return;
  entry.shows = entry.keys + "@SHOWS";
  entry.clicks = entry.keys + "@CLICKS";
  Operator op{.type = "row_statistics",
              .inputs = {choice.shows, choice.clicks},
              .outputs = {entry.shows, entry.clicks},
              .attributes = {{std::string(engine::kRoleAttribute), std::string("backward")}}};
  for (const Operator& made : main.operators()) {
    if (made.type != "row_gradient" || made.outputs[1] != entry.keys) continue;
    for (std::size_t i = 1; i < made.inputs.size(); i += 2) op.inputs.push_back(made.inputs[i]);
    op.attributes["paddings"] = attribute<std::vector<std::int64_t>>(made, "paddings");
  }
  main.append(std::move(op));
}

}  // namespace

std::vector<ps::TableConfig> TablePlan::tables() const {
  std::vector<ps::TableConfig> tables;
  for (const Entry& entry : entries) tables.push_back(entry.table);
  return tables;
}

void TablePlan::number_beside(const std::vector<TablePlan*>& others) {
  std::map<std::string, Entry*> known;
  std::uint32_t next = 0;
  for (TablePlan* other : others) {
    for (Entry& entry : other->entries) {
      next = std::max(next, entry.table.id + 1);
      Entry*& first = known[entry.parameter];
      if (first == nullptr || first->gradient.empty()) first = &entry;
    }
  }
  std::vector<std::pair<Entry*, ps::TableConfig>> changed;
  for (Entry& entry : entries) {
    const auto found = known.find(entry.parameter);
    entry.table.id = found == known.end() ? next++ : found->second->table.id;
    if (found == known.end() || entry.table == found->second->table) continue;
    if (entry.gradient.empty()) {
      changed.emplace_back(&entry, found->second->table);
    } else if (found->second->gradient.empty()) {
      changed.emplace_back(found->second, entry.table);
    } else {
      throw Error(ErrorKind::config,
                  "two programs train '" + entry.parameter +
                      "' differently: " + describe(found->second->table) + ", and " + describe(entry.table),
                  "give both the same optimizer, or train it in one of them only");
    }
  }
  for (auto& [entry, table] : changed) entry->table = table;
}

void TablePlan::read(const TablePlan& other, const Program& program) {
  for (const Entry& entry : other.entries) {
    const auto is_it = [&entry](const Entry& own) { return own.parameter == entry.parameter; };
    if (entry.table.kind != ps::TableConfig::Kind::dense || !program.has_variable(entry.parameter) ||
        std::any_of(entries.begin(), entries.end(), is_it))
      continue;
    entries.push_back({.parameter = entry.parameter, .gradient = "", .keys = "", .table = entry.table});
  }
}

TablePlan distribute(Program& main, Program& startup, const std::string& loss, const OptimizerConfig& config,
                     Placement placement, const TableChoices& choices,
                     const std::vector<TablePlan*>& others) {
  if (placement == Placement::server)
    move_lookups_to_servers(main);
  else
    engine::decay_all_rows(main, config);
  const auto sparse = sparse_parameters(main);
  check_choices(main, choices, sparse);
  mark_lookups(main, choices);
  auto gradients = engine::append_backward(main, loss);
  const bool averaged = placement == Placement::one_process && sparse.empty();
  const bool clips_means = placement == Placement::server && config.clips_means;
  const std::set<std::string> summaries =
      placement == Placement::server ? summaries_of(main) : std::set<std::string>();
  if (!clips_means) {
    engine::OptimizerConfig clipping = config;
    for (const std::string& parameter : summaries) clipping.own[parameter].is_clipped = false;
    engine::append_clip(main, gradients, clipping, averaged ? "update" : "backward");
  }

  std::map<std::string, TablePlan::Entry> entries;
  for (const auto& [parameter, width] : sparse) {
    TablePlan::Entry& entry = entries[parameter];
    entry.parameter = parameter;
    entry.table.kind = ps::TableConfig::Kind::sparse;
    entry.table.width = width;
    entry.table.initializer = take_initializer(startup, parameter, others);
  }
  for (const engine::ParameterGradient& gradient : gradients) {
    if (sparse.contains(gradient.parameter)) {
      entries[gradient.parameter].gradient = gradient.gradient;
      entries[gradient.parameter].keys = gradient.keys;
    } else if (placement == Placement::one_process) {
      engine::append_update(main, startup, gradient, config);
    } else {
      TablePlan::Entry& entry = entries[gradient.parameter];
      entry.parameter = gradient.parameter;
      entry.gradient = gradient.gradient;
      entry.table.kind = ps::TableConfig::Kind::dense;
      entry.table.width = static_cast<std::uint64_t>(engine::count(main.variable(gradient.parameter).shape));
    }
  }

  TablePlan plan;
  plan.placement = placement;
  for (auto& [parameter, entry] : entries) {
    entry.table.id = static_cast<std::uint32_t>(plan.entries.size());
    entry.table.name = parameter;
    entry.table.rule = rule_of(config, parameter, entry.table.kind);
    if (summaries.contains(parameter)) {
      entry.table.rule = {.kind = ps::UpdateRule::Kind::summary};
    } else if (clips_means) {
      entry.table.clip = clip_of(config, parameter);
    }
    const auto choice = choices.find(parameter);
    if (choice != choices.end()) {
      take_choice(entry.table, choice->second);
      add_statistics(main, entry, choice->second);
    }
    plan.entries.push_back(std::move(entry));
  }
  return plan;
}

}  // namespace fleetrun::runtime
