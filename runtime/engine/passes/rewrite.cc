#include "runtime/engine/passes/rewrite.h"

namespace fleetrun::engine {

namespace {

void note(std::map<std::string, std::vector<std::size_t>>& indexes, const std::string& name,
          std::size_t index) {
  if (name.empty()) return;
  auto& all = indexes[name];
  if (all.empty() || all.back() != index) all.push_back(index);
}

const std::vector<std::size_t>& find(const std::map<std::string, std::vector<std::size_t>>& indexes,
                                     const std::string& name) {
  static const std::vector<std::size_t> none;
  const auto found = indexes.find(name);
  return found == indexes.end() ? none : found->second;
}

}  // namespace

Rewrite::Rewrite(const Program& program, const Kept& kept) : program_(program), kept_(kept) {
  for (std::size_t i = 0; i < size(); ++i) {
    for (const std::string& name : op(i).inputs) note(readers_, name, i);
    for (const std::string& name : op(i).outputs) note(writers_, name, i);
  }
}

const std::vector<std::size_t>& Rewrite::readers(const std::string& name) const {
  return find(readers_, name);
}

const std::vector<std::size_t>& Rewrite::writers(const std::string& name) const {
  return find(writers_, name);
}

bool Rewrite::is_passing(const std::string& name) const {
  if (name.empty() || kept_.contains(name)) return false;
  const Variable& variable = program_.variable(name);
  return !variable.persistable && !variable.is_data && writers(name).size() == 1;
}

Program Rewrite::result() const {
  Program result = program_;
  auto& operators = result.operators();
  operators.clear();
  for (std::size_t i = 0; i < size(); ++i) {
    const auto edit = edits_.find(i);
    if (edit == edits_.end()) {
      operators.push_back(op(i));
    } else {
      operators.insert(operators.end(), edit->second.begin(), edit->second.end());
    }
  }
  return result;
}

}  // namespace fleetrun::engine
