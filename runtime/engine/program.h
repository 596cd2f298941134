// A training program as data: variables, and operators over them in order.
//
// Built from Python or C++ one operator at a time; append_backward adds the gradient operators, minimize
// (optimizer.h) the updates. Programs are run by an Executor (executor.h) over a Scope; nothing
// here computes. Threads: building is single-threaded; a finished Program may be read by any number of
// threads.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fleetrun::engine {

/// bool is stored as one byte. Ids and labels are int64; parameters are float32, and what has a gradient is
/// that or float64.
enum class DataType { float32, float64, int32, int64, boolean };

/// -1 stands for a size known only when the program runs (the batch).
using Shape = std::vector<std::int64_t>;

struct Variable {
  std::string name;
  DataType type = DataType::float32;
  Shape shape;
  /// 1: a sparse input slot with a variable number of values per example (offsets travel with the tensor).
  int lod_level = 0;
  /// Kept in the scope from one run to the next (parameters, optimizer state, metrics).
  bool persistable = false;
  /// Updated by the optimizer.
  bool trainable = false;
  bool stop_gradient = true;
  /// Fed from outside: `data` inputs.
  bool is_data = false;

  bool operator==(const Variable&) const = default;
};

using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string>>;

/// Inputs and outputs are variable names in the order that the operator's entry in operators.h documents; an
/// operator that takes any number of inputs (concat, sum) takes them all.
struct Operator {
  std::string type;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, Attribute> attributes;
  /// The line of the script that appended it, for errors: "train.py:12: y = paddle.add(a, b)".
  /// Empty when not known.
  std::string where = {};

  bool operator==(const Operator&) const = default;
};

class Program {
 public:
  /// Throws: Error(config) when the name is taken by a different variable.
  Variable& add_variable(Variable variable);
  /// Throws: Error(config) naming the variable that is not there, and the nearest name.
  const Variable& variable(const std::string& name) const;
  Variable& variable(const std::string& name);
  bool has_variable(const std::string& name) const noexcept;
  const std::map<std::string, Variable>& variables() const noexcept { return variables_; }

  /// Appends `op`, makes the output variables that do not exist yet, and sets their types and shapes.
  /// Throws: Error(config) naming the operator and the shapes or types that disagree, or the unknown
  /// operator.
  const Operator& append(Operator op);
  const std::vector<Operator>& operators() const noexcept { return operators_; }
  std::vector<Operator>& operators() noexcept { return operators_; }

  /// 0: fresh random numbers in every run of the startup program.
  std::uint64_t random_seed = 0;

  bool operator==(const Program&) const = default;

 private:
  std::map<std::string, Variable> variables_;
  std::vector<Operator> operators_;
};

/// The attribute that marks operators which are not part of the forward computation: "backward" or "update".
inline constexpr std::string_view kRoleAttribute = "role";
/// The names of an operator's inputs and outputs, in this order, where a pass has given them others: errors
/// name these, and random numbers are chosen by the first output's.
inline constexpr std::string_view kNamesAttribute = "names";

/// The program's variables and operators as text, for people.
std::string to_string(const Program& program);

/// The program as a picture, for graphviz's dot: boxes are operators (backward ones yellow, updates pink),
/// ellipses the variables that are fed (blue) or kept (grey).
std::string to_dot(const Program& program);

/// A copy for evaluation: backward and update operators are dropped, dropout and the like switch to
/// inference.
Program clone_for_test(const Program& program);

/// Adds the operators that compute the gradient of `loss` (one value) by every trainable variable that it
/// depends on. Returns (parameter, gradient) names in parameter order. The gradient of an `embedding` with
/// attribute is_sparse and of a `sparse_embedding` is a row gradient: values[n, width] with the keys of the
/// lookup, named in ParameterGradient. asked: the variables that get a gradient instead, whatever they are
/// computed from; there is no error then where the loss depends on none. Throws: Error(config) when loss has
/// more than one value, or an operator on the way has no gradient.
struct ParameterGradient {
  std::string parameter;
  std::string gradient;
  bool rows = false;
  /// The variable with the keys of a row gradient: int64 [n].
  std::string keys = {};

  bool operator==(const ParameterGradient&) const = default;
};
std::vector<ParameterGradient> append_backward(Program& program, const std::string& loss,
                                               const std::set<std::string>& asked = {});

}  // namespace fleetrun::engine
