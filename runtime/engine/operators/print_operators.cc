// A value that is written to the standard output of the training process when it is computed.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"

namespace fleetrun::engine {

namespace {

void infer_print(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const std::string phase = attribute(inference.op(), "print_phase", std::string("both"));
  if (phase != "forward" && phase != "backward" && phase != "both") {
    inference.fail("there is no print_phase '" + phase + "'", "use forward, backward or both");
  }
  const Variable& x = inference.input(0);
  inference.set_output(0, x.type, Shape(x.shape), x.lod_level);
}

template <class T>
void append_values(std::ostringstream& out, const Tensor& tensor, std::size_t max) {
  const auto values = tensor.values<T>();
  for (std::size_t i = 0; i < std::min(values.size(), max); ++i) out << (i == 0 ? "" : " ") << values[i];
}

void append_data(std::ostringstream& out, const Tensor& tensor, std::int64_t summarize) {
  const std::size_t max = summarize < 0 ? tensor.size() : static_cast<std::size_t>(summarize);
  switch (tensor.type()) {
    case DataType::float32:
      return append_values<float>(out, tensor, max);
    case DataType::float64:
      return append_values<double>(out, tensor, max);
    case DataType::int32:
      return append_values<std::int32_t>(out, tensor, max);
    case DataType::int64:
      return append_values<std::int64_t>(out, tensor, max);
    case DataType::boolean:
      return append_values<bool>(out, tensor, max);
  }
}

void append_offsets(std::ostringstream& out, const Tensor& tensor) {
  out << "  - lod: {";
  const char* separator = "{";
  for (const std::size_t offset : tensor.offsets) {
    out << separator << offset;
    separator = ", ";
  }
  out << (tensor.offsets.empty() ? "}\n" : "}}\n");
}

/// Paddle's lines.
std::string text_of(const Operator& op, const Tensor& tensor) {
  const auto shown = [&op](const char* name) { return attribute(op, name, true); };
  std::ostringstream out;
  if (shown("print_tensor_name")) out << "Variable: " << attribute(op, "name", op.inputs[0]) << "\n";
  const std::string message = attribute(op, "message", std::string());
  if (!message.empty()) out << "  - message: " << message << "\n";
  if (shown("print_tensor_lod")) append_offsets(out, tensor);
  out << "  - place: Place(cpu)\n";
  if (shown("print_tensor_shape")) out << "  - shape: " << to_string(tensor.shape()) << "\n";
  if (shown("print_tensor_layout")) out << "  - layout: NCHW\n";
  if (shown("print_tensor_type")) out << "  - dtype: " << to_string(tensor.type()) << "\n";
  out << "  - data: [";
  append_data(out, tensor, attribute(op, "summarize", std::int64_t{20}));
  out << "]\n";
  return out.str();
}

/// How often the operator prints; -1: always.
std::int64_t times(const Operator& op) {
  const bool is_gradient = op.attributes.contains(std::string(kRoleAttribute));
  const std::string unwanted = is_gradient ? "forward" : "backward";
  if (attribute(op, "print_phase", std::string("both")) == unwanted) return 0;
  const auto first = attribute(op, "first_n", std::int64_t{-1});
  return first > 0 ? first : -1;
}

Kernel prepare_print(const Preparation& p) {
  return [op = &p.op, x = p.input(0), y = p.output(0), left = times(p.op)]() mutable {
    y->resize(x->type(), x->shape());
    y->offsets = x->offsets;
    if (x->bytes() > 0) std::memcpy(y->data(), x->data(), x->bytes());
    if (left == 0) return;
    if (left > 0) --left;
    const std::string text = text_of(*op, *x);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
}

/// The gradient passes through, and is printed where the phase says so.
void print_gradient(GradientBuilder& builder) {
  Operator back{.type = "print",
                .inputs = {builder.output_gradient(0)},
                .outputs = {builder.input_gradient(0)},
                .attributes = builder.op().attributes};
  back.attributes["name"] = back.inputs[0];
  builder.append(std::move(back));
}

}  // namespace

std::span<const OperatorDefinition> print_operators() {
  static constexpr OperatorDefinition all[] = {
      {"print",
       infer_print,
       prepare_print,
       print_gradient,
       {"(X of any type) -> Out", "a copy, written to standard output",
        "message; first_n = -1 (so many times; below 1: always); summarize = 20 (so many values; -1: all); "
        "print_phase: forward, backward (the gradient) or both; print_tensor_name, print_tensor_type, "
        "print_tensor_shape, print_tensor_layout, print_tensor_lod = true; name = X's"}},
  };
  return all;
}

}  // namespace fleetrun::engine
