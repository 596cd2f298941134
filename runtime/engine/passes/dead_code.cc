// From the last operator to the first: one is needed when it makes what is kept, persistable, or read by a
// needed one behind it. An operator without outputs is needed for what it does, and so are print and
// call.

#include <algorithm>

#include "runtime/engine/passes/rewrite.h"

namespace fleetrun::engine {

Program remove_dead_code(const Program& program, const Kept& kept) {
  Rewrite rewrite(program, kept);
  std::set<std::string> read = kept;
  for (std::size_t i = rewrite.size(); i-- > 0;) {
    const Operator& op = rewrite.op(i);
    const auto needed = [&](const std::string& name) {
      return !name.empty() && (read.contains(name) || program.variable(name).persistable);
    };
    const bool acts = op.outputs.empty() || op.type == "print" || op.type == "call";
    if (!acts && std::ranges::none_of(op.outputs, needed)) {
      rewrite.drop(i);
      continue;
    }
    read.insert(op.inputs.begin(), op.inputs.end());
  }
  return rewrite.result();
}

}  // namespace fleetrun::engine
