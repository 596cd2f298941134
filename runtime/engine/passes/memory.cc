// Walks the operators in order and gives each temporary, when it is made, the name of one of its type that
// nobody reads any more: the largest first, since a tensor keeps its memory. A temporary that has, or could
// have, offsets keeps its own, and so does one that an operator reads and writes at once. Errors, and random
// numbers, go by the names that were there before.

#include <algorithm>

#include "runtime/engine/operators.h"
#include "runtime/engine/passes/rewrite.h"

namespace fleetrun::engine {

namespace {

/// From the operator that makes a temporary to the last that names it.
struct Life {
  std::size_t first = 0;
  std::size_t last = 0;
};

bool may_have_offsets(const Rewrite& rewrite, const std::string& name) {
  if (rewrite.program().variable(name).lod_level > 0) return true;
  return std::ranges::any_of(rewrite.op(rewrite.writers(name).front()).inputs, [&](const std::string& input) {
    return !input.empty() && rewrite.program().variable(input).lod_level > 0;
  });
}

std::map<std::string, Life> lives_of(const Rewrite& rewrite) {
  std::map<std::string, Life> lives;
  for (std::size_t i = 0; i < rewrite.size(); ++i) {
    for (const std::string& name : rewrite.op(i).outputs) {
      if (!rewrite.is_passing(name) || may_have_offsets(rewrite, name)) continue;
      const auto& readers = rewrite.readers(name);
      if (!readers.empty() && readers.front() <= i) continue;
      lives[name] = {i, readers.empty() ? i : readers.back()};
    }
  }
  return lives;
}

/// Values of one example: unknown sizes are the batch's.
std::int64_t size_of(const Variable& variable) {
  std::int64_t size = 1;
  for (const std::int64_t dimension : variable.shape) size *= std::max<std::int64_t>(dimension, 1);
  return size;
}

/// Lets `renamed` say what its inputs and outputs were called.
void note_names(const Operator& original, Operator& renamed) {
  if (renamed.inputs == original.inputs && renamed.outputs == original.outputs) return;
  std::vector<std::string> names = original.inputs;
  names.insert(names.end(), original.outputs.begin(), original.outputs.end());
  renamed.attributes[std::string(kNamesAttribute)] = std::move(names);
}

}  // namespace

Program share_memory(const Program& program, const Kept& kept) {
  Rewrite rewrite(program, kept);
  const std::map<std::string, Life> lives = lives_of(rewrite);
  std::map<std::string, std::string> names;
  std::vector<std::string> free;
  for (std::size_t i = 0; i < rewrite.size(); ++i) {
    Operator op = rewrite.op(i);
    for (std::string& name : op.outputs) {
      const auto life = lives.find(name);
      if (life == lives.end()) continue;
      auto best = free.end();
      for (auto at = free.begin(); at != free.end(); ++at) {
        if (program.variable(*at).type != program.variable(name).type) continue;
        if (best == free.end() || size_of(program.variable(*best)) < size_of(program.variable(*at)))
          best = at;
      }
      names[name] = best == free.end() ? name : *best;
      if (best != free.end()) free.erase(best);
      name = names[name];
    }
    for (std::string& name : op.inputs) {
      if (const auto found = names.find(name); found != names.end()) name = found->second;
    }
    const Operator& original = rewrite.op(i);
    note_names(original, op);
    // What ends here is free for the operators behind, not for the outputs of this one.
    std::set<std::string> ended;
    for (const auto* all : {&original.inputs, &original.outputs}) {
      for (const std::string& name : *all) {
        const auto life = lives.find(name);
        if (life != lives.end() && life->second.last == i && ended.insert(name).second)
          free.push_back(names[name]);
      }
    }
    rewrite.replace(i, {std::move(op)});
  }
  return rewrite.result();
}

}  // namespace fleetrun::engine
