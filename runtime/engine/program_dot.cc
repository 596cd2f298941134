// One box for each operator, one ellipse for each variable that is fed or kept,
// and arrows with the names of the others.

#include <map>
#include <set>
#include <sstream>

#include "runtime/engine/operators.h"
#include "runtime/engine/program.h"

namespace fleetrun::engine {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string box_of(std::size_t index) {
  return "op" + std::to_string(index);
}

bool has_ellipse(const Variable& variable) {
  return variable.is_data || variable.persistable;
}

const char* color_of(const Operator& op) {
  const auto role = attribute(op, std::string(kRoleAttribute), std::string());
  if (role == "backward") return "lightyellow";
  return role == "update" ? "lightpink" : "white";
}

}  // namespace

std::string to_dot(const Program& program) {
  std::ostringstream out;
  out << "digraph program {\n  node [shape=box, style=filled, fillcolor=white];\n";
  std::set<std::string> ellipses;
  std::map<std::string, std::size_t> makers;
  const auto& operators = program.operators();
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = operators[i];
    out << "  " << box_of(i) << " [label=" << quoted(op.type) << ", fillcolor=" << color_of(op) << "];\n";
    for (const std::string& name : op.inputs) {
      if (name.empty()) continue;
      if (has_ellipse(program.variable(name))) {
        ellipses.insert(name);
        out << "  " << quoted(name) << " -> " << box_of(i) << ";\n";
      } else if (const auto maker = makers.find(name); maker != makers.end()) {
        out << "  " << box_of(maker->second) << " -> " << box_of(i) << " [label=" << quoted(name) << "];\n";
      }
    }
    for (const std::string& name : op.outputs) {
      if (name.empty()) continue;
      makers[name] = i;
      if (!has_ellipse(program.variable(name))) continue;
      ellipses.insert(name);
      out << "  " << box_of(i) << " -> " << quoted(name) << ";\n";
    }
  }
  for (const std::string& name : ellipses) {
    const Variable& variable = program.variable(name);
    out << "  " << quoted(name)
        << " [shape=ellipse, fillcolor=" << (variable.is_data ? "lightblue" : "lightgrey")
        << ", label=" << quoted(name + " " + to_string(variable.shape)) << "];\n";
  }
  out << "}\n";
  return out.str();
}

}  // namespace fleetrun::engine
