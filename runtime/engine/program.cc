#include "runtime/engine/program.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/program_text.h"

namespace fleetrun::engine {

namespace {

/// Edits that turn `a` into `b`.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

template <class Names>
std::string nearest(const std::string& name, const Names& names) {
  std::string best;
  std::size_t min = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const auto& candidate : names) {
    const std::size_t edits = distance(name, std::string(candidate));
    if (edits < min) {
      min = edits;
      best = candidate;
    }
  }
  return best;
}

std::string hint_for(const std::string& nearest_name) {
  return nearest_name.empty() ? std::string() : "did you mean '" + nearest_name + "'?";
}

std::string text_of(const Attribute& attribute) {
  std::ostringstream out;
  std::visit(
      [&out](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          out << (value ? "true" : "false");
        } else if constexpr (std::is_arithmetic_v<T>) {
          out << value;
        } else if constexpr (std::is_same_v<T, std::string>) {
          out << '"' << value << '"';
        } else {
          out << '[';
          for (std::size_t i = 0; i < value.size(); ++i) out << (i == 0 ? "" : ", ") << value[i];
          out << ']';
        }
      },
      attribute);
  return out.str();
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + (name.empty() ? "-" : name);
  return text;
}

}  // namespace

Variable& Program::add_variable(Variable variable) {
  if (variable.name.empty()) throw Error(ErrorKind::config, "a variable needs a name");
  const auto [found, added] = variables_.emplace(variable.name, variable);
  if (!added && found->second != variable) {
    throw Error(ErrorKind::config,
                "variable '" + variable.name + "' is there already, as " +
                    std::string(to_string(found->second.type)) + " " + to_string(found->second.shape) +
                    "; it cannot become " + std::string(to_string(variable.type)) + " " +
                    to_string(variable.shape),
                "give one of them another name");
  }
  return found->second;
}

const Variable& Program::variable(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found != variables_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, variable] : variables_) names.push_back(known);
  throw Error(ErrorKind::config, "the program has no variable '" + name + "'",
              hint_for(nearest(name, names)));
}

Variable& Program::variable(const std::string& name) {
  return const_cast<Variable&>(static_cast<const Program*>(this)->variable(name));
}

bool Program::has_variable(const std::string& name) const noexcept {
  return variables_.contains(name);
}

const Operator& Program::append(Operator op) {
  const OperatorDefinition* definition = find_operator(op.type);
  if (definition == nullptr) {
    throw Error(ErrorKind::config, "there is no operator '" + op.type + "'",
                hint_for(nearest(op.type, operator_types())));
  }
  bool differentiable = definition->has_parameter;
  for (const std::string& name : op.inputs) {
    if (!name.empty() && !variable(name).stop_gradient) differentiable = true;
  }
  std::vector<std::string> made;
  for (const std::string& name : op.outputs) {
    if (!name.empty() && !has_variable(name)) made.push_back(name);
  }
  Inference inference(*this, op);
  definition->infer(inference);
  for (const std::string& name : made) {
    Variable& output = variable(name);
    if (differentiable && definition->gradient != nullptr && has_gradients(output.type)) {
      output.stop_gradient = false;
    }
  }
  operators_.push_back(std::move(op));
  return operators_.back();
}

std::string to_string(const Program& program) {
  std::ostringstream out;
  for (const auto& [name, variable] : program.variables()) {
    out << "var " << name << " : " << to_string(variable.type) << " " << to_string(variable.shape);
    if (variable.lod_level > 0) out << " lod_level=" << variable.lod_level;
    if (variable.is_data) out << " data";
    if (variable.persistable) out << " persistable";
    if (variable.trainable) out << " trainable";
    out << "\n";
  }
  for (const Operator& op : program.operators()) {
    out << join(op.outputs) << " = " << op.type << "(" << join(op.inputs) << ")";
    const char* separator = " {";
    for (const auto& [name, value] : op.attributes) {
      out << separator << name << "=" << text_of(value);
      separator = ", ";
    }
    out << (op.attributes.empty() ? "\n" : "}\n");
  }
  return out.str();
}

Program clone_for_test(const Program& program) {
  Program clone = program;
  auto& operators = clone.operators();
  std::erase_if(operators, [](const Operator& op) {
    const auto role = op.attributes.find(std::string(kRoleAttribute));
    return role != op.attributes.end();
  });
  for (Operator& op : operators) {
    if (op.type == "dropout" || op.type == "batch_norm" || op.type == "loop") op.attributes["is_test"] = true;
    if (op.type != "loop") continue;
    const Program body = program_of_words(attribute<std::vector<std::string>>(op, "body"));
    op.attributes["body"] = to_words(clone_for_test(body));
  }
  return clone;
}

}  // namespace fleetrun::engine
