#include "runtime/engine/passes/passes.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"

namespace fleetrun::engine {

namespace {

std::string known_names() {
  std::string names = "all";
  for (const Pass& pass : all_passes()) names.append(", ").append(pass.name);
  return names;
}

}  // namespace

std::span<const Pass> all_passes() {
  static constexpr Pass all[] = {
      {"dead_code", remove_dead_code},       {"linear_act", fuse_linear_activation},
      {"linear_sgd", fuse_linear_sgd},       {"batch_norm_act", fuse_batch_norm_activation},
      {"lookup_concat", fuse_lookup_concat}, {"memory", share_memory},
  };
  return all;
}

Program optimize(const Program& program, const Kept& kept, const std::set<std::string>& off,
                 const PassObserver& observer) {
  for (const std::string& name : off) {
    const bool known = name == "all" ||
                       std::ranges::any_of(all_passes(), [&](const Pass& pass) { return pass.name == name; });
    if (!known)
      throw Error(ErrorKind::config, "there is no pass '" + name + "' to leave out",
                  "there are " + known_names());
  }
  Program result = program;
  for (const Pass& pass : all_passes()) {
    if (off.contains("all") || off.contains(std::string(pass.name))) continue;
    Program after = pass.apply(result, kept);
    if (observer) observer(pass.name, result, after);
    result = std::move(after);
  }
  return result;
}

std::vector<OutsideLookup> outside_lookups(const Operator& op) {
  if (op.type == "sparse_embedding") {
    return {{attribute<std::string>(op, "parameter"), op.inputs[0],
             attribute(op, "padding_idx", std::int64_t{-1})}};
  }
  std::vector<OutsideLookup> lookups;
  if (op.type != "lookup_concat") return lookups;
  const auto parameters = attribute<std::vector<std::string>>(op, "parameters");
  const auto paddings = attribute<std::vector<std::int64_t>>(op, "paddings");
  for (const std::int64_t turn : attribute<std::vector<std::int64_t>>(op, "order")) {
    const auto part = static_cast<std::size_t>(turn);
    if (parameters.at(part).empty()) continue;
    lookups.push_back({parameters[part], op.inputs.at(2 * part + 1), paddings.at(part)});
  }
  return lookups;
}

}  // namespace fleetrun::engine
