// Operators that call a function of the process, such as a script's. The program works in that process alone.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/base/random_bytes.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/callbacks.h"

namespace fleetrun::engine {

namespace {

class Callbacks {
 public:
  std::int64_t keep(Callback callback) {
    const std::lock_guard lock(mutex_);
    std::int64_t number = 0;
    while (number == 0 || all_.contains(number)) {
      number = static_cast<std::int64_t>(random_number<std::uint64_t>() >> 1);
    }
    all_[number] = std::make_shared<const Callback>(std::move(callback));
    return number;
  }
  std::shared_ptr<const Callback> find(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(number);
    return found == all_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<const Callback>> all_;
};

/// Never destroyed: what a function holds may need more than is left when the process ends.
Callbacks& callbacks() {
  static Callbacks& all = *new Callbacks;
  return all;
}

/// Its outputs are variables that are there: what they are, only the script knows.
void infer_call(Inference& inference) {
  for (std::size_t i = 0; i < inference.op().outputs.size(); ++i) {
    const Variable out = inference.program().variable(inference.op().outputs[i]);
    inference.set_output(i, out.type, out.shape, out.lod_level);
  }
}

Kernel prepare_call(const Preparation& p) {
  const auto callback = callbacks().find(attribute<std::int64_t>(p.op, "function"));
  if (callback == nullptr) {
    fail(p.op, "the function that it calls is none of this process",
         "run the program in the process that builds it");
  }
  std::vector<const Tensor*> inputs;
  std::vector<Tensor*> outputs;
  for (std::size_t i = 0; i < p.inputs(); ++i) inputs.push_back(p.input(i));
  for (std::size_t i = 0; i < p.outputs(); ++i) outputs.push_back(p.output(i));
  return
      [callback, inputs = std::move(inputs), outputs = std::move(outputs)] { (*callback)(inputs, outputs); };
}

/// (inputs, outputs, gradients of outputs, less those that it skips) -> gradients of inputs
void call_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  const auto backward = attribute(op, "backward", std::int64_t{0});
  const auto skipped = attribute(op, "skipped", std::vector<std::string>());
  Operator gradient{.type = "call_grad", .inputs = {}, .outputs = {}, .attributes = {{"function", backward}}};
  for (const auto* names : {&op.inputs, &op.outputs}) {
    std::ranges::copy_if(*names, std::back_inserter(gradient.inputs),
                         [&](const std::string& name) { return std::ranges::count(skipped, name) == 0; });
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) gradient.inputs.push_back(builder.output_gradient(i));
  for (std::size_t i = 0; i < op.inputs.size(); ++i) gradient.outputs.push_back(builder.input_gradient(i));
  // Without such a function the outputs are constants, as in Paddle.
  if (backward != 0) builder.append(std::move(gradient));
}

}  // namespace

std::int64_t keep_callback(Callback callback) {
  return callbacks().keep(std::move(callback));
}

std::span<const OperatorDefinition> call_operators() {
  static constexpr OperatorDefinition all[] = {
      {"call",
       infer_call,
       prepare_call,
       call_gradient,
       {"(X1, X2, ...) -> Out1, Out2, ...",
        "what a function of the process makes of its inputs, in variables that are there",
        "function, and backward, which takes inputs, outputs and the gradients of outputs and gives those of "
        "the inputs: numbers in this process; skipped: names that backward is not given; ranks: whether they "
        "call other ranks"}},
      {"call_grad", infer_gradient, prepare_call, nullptr},
  };
  return all;
}

}  // namespace fleetrun::engine
