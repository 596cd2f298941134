// Passes: functions from a program to one that computes the same with less work.
//
//   dead_code       operators whose results nobody reads are left out
//   linear_act      linear + relu, sigmoid or tanh, and their two gradients, become one operator each
//   linear_sgd      the gradients of linear and plain SGD's steps of its parameters become one operator
//   batch_norm_act  batch_norm with such an activation behind it likewise
//   lookup_concat   lookups, what pools or reshapes their rows, and the concat behind them become one
//                   operator that writes the rows straight into the product's input;
//                   their gradients are taken straight from it
//   memory          temporaries that do not live at the same time become one variable
//
// Results are bit for bit those of the program before, but for linear_sgd: there a step is rounded within the
// product, so that a parameter may differ in its last bit after it. A variable that is read after a run has
// to be named in `kept`: a pass leaves those, and all persistable variables,
// as they are, or does not apply. Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/program.h"

namespace fleetrun::engine {

/// Names of variables.
using Kept = std::set<std::string>;

struct Pass {
  std::string_view name;
  Program (*apply)(const Program&, const Kept&);
};

Program remove_dead_code(const Program& program, const Kept& kept);
Program fuse_linear_activation(const Program& program, const Kept& kept);
Program fuse_linear_sgd(const Program& program, const Kept& kept);
Program fuse_batch_norm_activation(const Program& program, const Kept& kept);
Program fuse_lookup_concat(const Program& program, const Kept& kept);
Program share_memory(const Program& program, const Kept& kept);

/// In the order in which optimize applies them.
std::span<const Pass> all_passes();

/// Called with the program before and after each pass.
using PassObserver = std::function<void(std::string_view name, const Program& before, const Program& after)>;

/// Applies all passes but those named in `off` ("all" leaves out every one).
/// Throws: Error(config) for a name that is not a pass.
Program optimize(const Program& program, const Kept& kept, const std::set<std::string>& off = {},
                 const PassObserver& observer = {});

/// What an operator asks the executor's RowSource for.
struct OutsideLookup {
  std::string parameter;
  std::string ids;
  std::int64_t padding = -1;
};
/// In the order of the calls; none for an operator that asks for nothing.
std::vector<OutsideLookup> outside_lookups(const Operator& op);

}  // namespace fleetrun::engine
