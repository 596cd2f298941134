// The operators of a Program: how each checks its inputs, computes, and is differentiated.
//
// Each group of them has a source file, which ends with its table: inputs, outputs, attributes and meaning of
// every operator. fleetrun-operators(7) is made from these tables. This room knows none of them:
// operators/all_operators.h adds them to the one table. Names and meanings are Paddle's where Paddle has the
// operator. The gradient operator of `x` is `x_grad`; the gradient of a variable v is named v@GRAD.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/executor.h"
#include "runtime/engine/program.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::engine {

std::string_view to_string(DataType type) noexcept;
/// Throws: Error(config) for a name that is not a type.
DataType parse_data_type(std::string_view name);
/// Whether values of this type have gradients: float32 and float64.
bool has_gradients(DataType type) noexcept;
/// "[-1, 400]".
std::string to_string(const Shape& shape);
/// The product of all dimensions; -1 when one is unknown. The largest number stands for every larger one.
std::int64_t count(std::span<const std::int64_t> shape) noexcept;

/// The attribute as T, converted between bool, integer and floating point; `fallback` when it is not there.
/// T: bool, std::int64_t, double, std::string, or a vector of the latter three. Throws: Error(config).
template <class T>
T attribute(const Operator& op, const std::string& name, T fallback);
/// The same for an attribute that must be there.
template <class T>
T attribute(const Operator& op, const std::string& name);

/// Whether training appended it as "backward" or "update".
bool has_role(const Operator& op, std::string_view role);
bool is_update(const Operator& op);
/// A test clone keeps the variables of its gradients, not the operators that make them.
bool has_backward(const Program& program);

/// An operator that is being appended: its inputs are there, its outputs get their types and shapes.
class Inference {
 public:
  Inference(Program& program, const Operator& op);

  const Operator& op() const noexcept { return op_; }
  const Program& program() const noexcept { return program_; }
  const Variable& input(std::size_t index) const;
  /// Throws when the number of inputs (outputs) is not within [least, most].
  void expect_inputs(std::size_t min, std::size_t max) const;
  void expect_outputs(std::size_t min, std::size_t max) const;
  void expect_type(std::size_t index, DataType type) const;
  /// Makes the output variable, or checks the one that is there.
  void set_output(std::size_t index, DataType type, const Shape& shape, int lod_level = 0);
  /// Declares a variable that the operator needs without reading it (the parameter of sparse_embedding).
  void declare(Variable variable);
  /// Error(config): "OPERATOR: WHAT: NAME float32 [2, 3], NAME int64 [1]", while: the line of the script.
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const;

 private:
  Program& program_;
  const Operator& op_;
};

/// Computes one operator. Made once for an executor; pointers into tensors are taken anew in every call,
/// because sizes change from batch to batch.
using Kernel = std::function<void()>;

/// What a kernel is made from. Tensors and the operator live as long as the executor.
class Preparation {
 public:
  Preparation(const Operator& op, std::vector<Tensor*> inputs, std::vector<Tensor*> outputs)
      : op(op), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  const Operator& op;
  RowSource* rows = nullptr;
  /// Seed of this operator's random numbers.
  std::uint64_t seed = 0;

  std::size_t inputs() const noexcept { return inputs_.size(); }
  std::size_t outputs() const noexcept { return outputs_.size(); }
  /// nullptr where the name is empty or missing (an optional input, a gradient nobody wants).
  const Tensor* input(std::size_t index) const noexcept {
    return index < inputs_.size() ? inputs_[index] : nullptr;
  }
  Tensor* output(std::size_t index) const noexcept {
    return index < outputs_.size() ? outputs_[index] : nullptr;
  }

 private:
  std::vector<Tensor*> inputs_;
  std::vector<Tensor*> outputs_;
};

/// Error(config) of a running kernel: "OPERATOR(inputs): WHAT", while: the line of the script.
[[noreturn]] void fail(const Operator& op, const std::string& what, const std::string& hint = {});
/// Error(data) of a value that no operator can take: WHAT, while: the line of the script.
[[noreturn]] void fail_on_data(const Operator& op, const std::string& what, const std::string& hint);

/// Appends the gradient operators of one operator.
class GradientBuilder {
 public:
  virtual ~GradientBuilder() = default;
  virtual const Operator& op() const noexcept = 0;
  virtual const Program& program() const noexcept = 0;
  /// The gradient of an output; empty when the loss does not depend on it.
  virtual std::string output_gradient(std::size_t index) const = 0;
  virtual bool wants(std::size_t index) const = 0;
  /// A new gradient of an input, to be written by the next appended operator; empty when not wanted.
  virtual std::string input_gradient(std::size_t index) = 0;
  /// Says that rows `ids` of parameter `parameter` get the gradient `values`; false when the parameter's
  /// gradient is dense.
  virtual bool row_gradient(const std::string& parameter, const std::string& values,
                            const std::string& ids) = 0;
  virtual void append(Operator op) = 0;
};

/// What the manual says of an operator.
struct OperatorText {
  std::string_view form;             // "(X, Index [n]) -> Out"
  std::string_view meaning;          // of Out: "rows of X"
  std::string_view attributes = {};  // "axis = 0; keepdim = false: true keeps it"
};

struct OperatorDefinition {
  std::string_view type;
  void (*infer)(Inference&) = nullptr;
  Kernel (*prepare)(const Preparation&) = nullptr;
  /// nullptr: not differentiable.
  void (*gradient)(GradientBuilder&) = nullptr;
  /// Empty for gradient operators, which append_backward alone adds.
  OperatorText text = {};
  /// Depends on a trainable parameter that is not among its inputs.
  bool has_parameter = false;
};

/// Adds a group of definitions to the table; the same group again changes nothing. Its rows live as long as
/// the process. Threads: before programs are built, as initializers of static variables do.
void add_operators(std::span<const OperatorDefinition> group);

/// nullptr when there is no such operator.
const OperatorDefinition* find_operator(std::string_view type) noexcept;
std::vector<std::string_view> operator_types();
/// Of an operator that comes from outside (a script, a file) and is about to be appended. Throws:
/// Error(config) for one that is append_backward's, whose inputs nobody checks; for an output without a name
/// or named twice; and for one that is an input too, unless it is a variable that is kept.
void check_from_outside(const Program& program, const Operator& op);

/// Of a whole program that is about to run. Throws: Error(config) naming the first operator that reads what
/// is neither kept nor fed nor made by an operator before it.
void check_values_are_made(const Program& program);

/// For gradient operators, whose outputs backward.cc has declared: nothing to infer.
void infer_gradient(Inference& inference);

}  // namespace fleetrun::engine
