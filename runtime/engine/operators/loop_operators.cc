// A loop whose number of steps the data says: its body is a program, an attribute of the operator.
//
// Forward, an executor runs the body step by step. What the body's gradient operators read of a step moves,
// not copied, onto a tape; backward, each step's values move from there into an executor of these operators,
// the last step first. The tape is found by its number, which is the value of the output Tape. Source:
// Pearlmutter and Siskind, Reverse-mode AD in a functional framework, 2008 (the tape of a loop).

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "runtime/engine/gradients.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/program_text.h"

namespace fleetrun::engine {

namespace {

using Names = std::vector<std::string>;

/// A size that a step changes is not known.
Shape merged(const Operator& op, const Variable& before, const Variable& after) {
  if (before.type != after.type || before.shape.size() != after.shape.size()) {
    fail(op,
         "'" + before.name + "' is " + std::string(to_string(before.type)) + " " + to_string(before.shape) +
             " before a step, and " + std::string(to_string(after.type)) + " " + to_string(after.shape) +
             " behind it",
         "let a step keep its type and its number of axes");
  }
  Shape shape = before.shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != after.shape[i]) shape[i] = -1;
  }
  return shape;
}

/// The body and what goes in and comes out of it.
struct Loop {
  explicit Loop(const Operator& op)
      : body(program_of_words(attribute<Names>(op, "body"))),
        inputs(attribute<Names>(op, "takes")),
        next(attribute<Names>(op, "next")),
        collected(attribute(op, "collected", Names())) {
    if (next.empty() || inputs.size() < next.size() || inputs.size() != op.inputs.size())
      fail(op, "its body takes " + std::to_string(inputs.size()) + " values");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Variable& input = body.variable(inputs[i]);
      input.persistable = true;
      if (i > 0 && i < next.size()) input.shape = merged(op, input, body.variable(next[i]));
    }
  }

  std::size_t carried() const noexcept { return next.size(); }
  bool is_float(const std::string& name) const { return has_gradients(body.variable(name).type); }

  Program body;
  Names inputs, next, collected;
};

void copy(const Tensor& from, Tensor& to) {
  to.resize(from.type(), from.shape());
  to.offsets = from.offsets;
  if (from.bytes() > 0) std::memcpy(to.data(), from.data(), from.bytes());
}

void zeros(Tensor& tensor, DataType type, const Shape& shape) {
  tensor.resize(type, shape);
  tensor.offsets.clear();
  if (tensor.bytes() > 0) std::memset(tensor.data(), 0, tensor.bytes());
}

template <class T>
void add_values(const Tensor& from, Tensor& to) {
  const auto values = from.values<T>();
  std::ranges::transform(values, to.values<T>(), to.values<T>().begin(), std::plus<T>());
}

void add(const Tensor& from, Tensor& to) {
  from.type() == DataType::float64 ? add_values<double>(from, to) : add_values<float>(from, to);
}

/// The gradient operators of a body, and what they read of it.
struct Backward {
  explicit Backward(const Loop& loop) : program(loop.body) {
    std::map<std::string, std::string> given;
    const auto seed = [&](const std::string& name) {
      if (!loop.is_float(name)) return;
      Variable variable = program.variable(name);
      variable.name = given[name] = name + "@SEED";
      variable.persistable = true;
      program.add_variable(variable);
    };
    std::ranges::for_each(loop.next, seed);
    std::ranges::for_each(loop.collected, seed);
    std::set<std::string> wanted;
    for (const std::string& name : loop.inputs) {
      if (loop.is_float(name) && !program.variable(name).stop_gradient) wanted.insert(name);
    }
    const std::size_t forward = program.operators().size();
    gradients = append_gradients(program, given, wanted);
    auto& operators = program.operators();
    operators.erase(operators.begin(), operators.begin() + std::ptrdiff_t(forward));
    std::set<std::string> made;
    for (const Operator& op : operators) {
      for (const std::string& name : op.inputs) {
        if (name.empty() || made.contains(name)) continue;
        Variable& variable = program.variable(name);
        variable.persistable = true;
        // What the steps before have made is as it is.
        std::ranges::fill(variable.shape, -1);
        if (!name.ends_with("@SEED")) read.insert(name);
      }
      made.insert(op.outputs.begin(), op.outputs.end());
    }
  }

  Program program;
  std::map<std::string, std::string> gradients;
  std::set<std::string> read;
};

/// What a run of the loop leaves for its gradient.
struct Tape {
  struct Step {
    std::map<std::string, Tensor> kept;
    std::vector<Shape> before, after, collected;  // of what is carried into it and on, and collected
  };
  std::vector<Step> steps;
  std::size_t count = 0;  // of steps in use; the others keep their memory
};

class Tapes {
 public:
  std::int64_t add(const std::shared_ptr<Tape>& tape) {
    const std::lock_guard lock(mutex_);
    std::erase_if(tapes_, [](const auto& entry) { return entry.second.expired(); });
    tapes_[++last_] = tape;
    return last_;
  }
  std::shared_ptr<Tape> find(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = tapes_.find(number);
    return found == tapes_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::int64_t last_ = 0;
  std::map<std::int64_t, std::weak_ptr<Tape>> tapes_;
};

Tapes& tapes() {
  static Tapes all;
  return all;
}

void infer_loop(Inference& inference) {
  const Operator& op = inference.op();
  const Loop loop(op);
  const std::size_t carried = loop.carried();
  inference.expect_outputs(carried + loop.collected.size() + 1, carried + loop.collected.size() + 1);
  if (inference.input(0).type != DataType::boolean || count(inference.input(0).shape) != 1)
    inference.fail("its condition must be one bool");
  for (const Operator& inner : loop.body.operators()) {
    if (inner.type == "sparse_embedding" || is_update(inner))
      inference.fail("its body has a " + inner.type, "look the rows up before the loop");
  }
  inference.set_output(0, DataType::boolean, inference.input(0).shape);
  for (std::size_t i = 1; i < carried; ++i) {
    const Variable& before = loop.body.variable(loop.inputs[i]);
    inference.set_output(i, before.type, before.shape, loop.body.variable(loop.next[i]).lod_level);
  }
  for (std::size_t i = 0; i < loop.collected.size(); ++i) {
    const Variable& one = loop.body.variable(loop.collected[i]);
    if (one.shape.empty()) inference.fail("'" + one.name + "' has no axis along which steps follow");
    Shape shape = one.shape;
    shape[0] = -1;
    inference.set_output(carried + i, one.type, shape);
  }
  inference.set_output(carried + loop.collected.size(), DataType::int64, {1});
}

/// Values of all steps, one behind the other along their first axis.
class Collected {
 public:
  void begin() {
    values_.clear();
    rows_ = 0;
  }
  void add(const Operator& op, const Tensor& value) {
    const Shape& shape = value.shape();
    if (shape.empty()) fail(op, "a collected value has no axis");
    if (rows_ == 0) rest_.assign(shape.begin() + 1, shape.end());
    if (!std::equal(rest_.begin(), rest_.end(), shape.begin() + 1, shape.end()))
      fail(op, "a step collects " + to_string(shape) + " behind rows of " + to_string(rest_));
    rows_ += shape[0];
    const auto* bytes = static_cast<const std::byte*>(value.data());
    values_.insert(values_.end(), bytes, bytes + value.bytes());
  }
  void write(const Variable& variable, Tensor& to) const {
    Shape shape = variable.shape;
    if (rows_ > 0) std::ranges::copy(rest_, shape.begin() + 1);
    std::ranges::replace(shape, -1, 0);
    shape[0] = rows_;
    to.resize(variable.type, shape);
    to.offsets.clear();
    if (!values_.empty()) std::memcpy(to.data(), values_.data(), values_.size());
  }

 private:
  std::vector<std::byte> values_;
  Shape rest_;
  std::int64_t rows_ = 0;
};

class Forward {
 public:
  explicit Forward(const Preparation& p)
      : op_(p.op), loop_(p.op), collected_(loop_.collected.size()), tape_(std::make_shared<Tape>()) {
    loop_.body.random_seed = p.seed;
    if (!attribute(op_, "is_test", false)) read_ = Backward(loop_).read;
    for (std::size_t i = loop_.carried(); i < loop_.inputs.size(); ++i) read_.erase(loop_.inputs[i]);
    for (std::size_t i = 0; i < p.inputs(); ++i) inputs_.push_back(p.input(i));
    for (std::size_t i = 0; i < p.outputs(); ++i) outputs_.push_back(p.output(i));
    for (const std::string& name : loop_.inputs) scope_.tensor(name);
    executor_ = std::make_unique<Executor>(loop_.body, scope_, p.rows);
    number_ = tapes().add(tape_);
  }

  void run() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) copy(*inputs_[i], scope_.tensor(loop_.inputs[i]));
    for (Collected& one : collected_) one.begin();
    tape_->count = 0;
    while (goes_on()) step();
    for (std::size_t i = 0; i < loop_.carried(); ++i) {
      if (outputs_[i] != nullptr) copy(scope_.tensor(loop_.inputs[i]), *outputs_[i]);
    }
    for (std::size_t i = 0; i < collected_.size(); ++i) {
      Tensor* to = outputs_[loop_.carried() + i];
      if (to != nullptr) collected_[i].write(loop_.body.variable(loop_.collected[i]), *to);
    }
    if (Tensor* to = outputs_.back()) {
      to->resize(DataType::int64, {1});
      to->values<std::int64_t>()[0] = number_;
    }
  }

 private:
  bool goes_on() {
    const Tensor& condition = scope_.tensor(loop_.inputs[0]);
    if (condition.size() != 1) fail(op_, "its condition has " + std::to_string(condition.size()) + " values");
    return condition.values<bool>()[0];
  }

  void step() {
    executor_->run({});
    if (tape_->count == tape_->steps.size()) tape_->steps.emplace_back();
    Tape::Step& step = tape_->steps[tape_->count++];
    for (auto* shapes : {&step.before, &step.after, &step.collected}) shapes->clear();
    for (std::size_t i = 0; i < collected_.size(); ++i) {
      const Tensor& value = executor_->tensor(loop_.collected[i]);
      collected_[i].add(op_, value);
      step.collected.push_back(value.shape());
    }
    // First copies of what the next step begins with, for a value that goes on may be one that is kept.
    next_.resize(loop_.carried());
    for (std::size_t i = 0; i < loop_.carried(); ++i) {
      copy(executor_->tensor(loop_.next[i]), next_[i]);
      step.before.push_back(scope_.tensor(loop_.inputs[i]).shape());
      step.after.push_back(next_[i].shape());
    }
    for (const std::string& name : read_) std::swap(executor_->tensor(name), step.kept[name]);
    for (std::size_t i = 0; i < loop_.carried(); ++i) std::swap(scope_.tensor(loop_.inputs[i]), next_[i]);
  }

  const Operator& op_;
  Loop loop_;
  Scope scope_;
  std::unique_ptr<Executor> executor_;
  std::set<std::string> read_;
  std::vector<const Tensor*> inputs_;
  std::vector<Tensor*> outputs_;
  std::vector<Tensor> next_;
  std::vector<Collected> collected_;
  std::shared_ptr<Tape> tape_;
  std::int64_t number_ = 0;
};

Kernel prepare_loop(const Preparation& p) {
  return [forward = std::make_shared<Forward>(p)] { forward->run(); };
}

/// (Tape, the inputs…, gradients of what it makes…) -> gradients of the inputs
class Reverse {
 public:
  explicit Reverse(const Preparation& p) : op_(p.op), loop_(without_gradients(p.op)), backward_(loop_) {
    number_ = p.input(0);
    const std::size_t made = loop_.carried() + loop_.collected.size();
    for (std::size_t i = 0; i < loop_.inputs.size(); ++i) inputs_.push_back(p.input(1 + i));
    for (std::size_t i = 0; i < made; ++i) given_.push_back(p.input(1 + loop_.inputs.size() + i));
    for (std::size_t i = 0; i < loop_.inputs.size(); ++i) wanted_.push_back(p.output(i));
    executor_ = std::make_unique<Executor>(backward_.program, scope_, p.rows);
  }

  void run() {
    tape_ = tapes().find(number_->values<std::int64_t>()[0]);
    if (tape_ == nullptr) fail(op_, "the steps of its loop are not there any more");
    begin();
    for (std::size_t t = tape_->count; t-- > 0;) step(tape_->steps[t]);
    for (std::size_t i = 0; i < loop_.carried(); ++i) {
      if (wanted_[i] != nullptr) copy(passed_[i], *wanted_[i]);
    }
  }

 private:
  static Operator without_gradients(const Operator& op) {
    Operator forward = op;
    const auto inputs = attribute<Names>(op, "takes").size();
    forward.inputs.assign(op.inputs.begin() + 1, op.inputs.begin() + 1 + std::ptrdiff_t(inputs));
    return forward;
  }

  /// The gradients of what the loop ends with; those of all steps add up in the captured ones.
  void begin() {
    passed_.resize(loop_.carried());
    for (std::size_t i = 0; i < loop_.inputs.size(); ++i) {
      const DataType type = inputs_[i]->type();
      if (i >= loop_.carried()) {
        if (backward_.read.contains(loop_.inputs[i])) copy(*inputs_[i], scope_.tensor(loop_.inputs[i]));
        if (wanted_[i] != nullptr) zeros(*wanted_[i], type, inputs_[i]->shape());
      } else if (given_[i] != nullptr) {
        copy(*given_[i], passed_[i]);
      } else if (has_gradients(type)) {
        const bool has_steps = tape_->count > 0;
        zeros(passed_[i], type, has_steps ? tape_->steps[tape_->count - 1].after[i] : inputs_[i]->shape());
      }
    }
    rows_.assign(loop_.collected.size(), 0);
    for (const Tape::Step& step : std::span(tape_->steps).first(tape_->count)) {
      for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] += step.collected[i][0];
    }
  }

  void seed_collected(const Tape::Step& step) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::string& name = loop_.collected[i];
      if (!loop_.is_float(name)) continue;
      rows_[i] -= step.collected[i][0];
      Tensor& seed = scope_.tensor(name + "@SEED");
      zeros(seed, loop_.body.variable(name).type, step.collected[i]);
      const Tensor* given = given_[loop_.carried() + i];
      if (given == nullptr || seed.bytes() == 0) continue;
      const std::size_t row = seed.bytes() / static_cast<std::size_t>(step.collected[i][0]);
      const auto* from = static_cast<const std::byte*>(given->data());
      std::memcpy(seed.data(), from + static_cast<std::size_t>(rows_[i]) * row, seed.bytes());
    }
  }

  void step(Tape::Step& step) {
    for (auto& [name, value] : step.kept) std::swap(scope_.tensor(name), value);
    for (std::size_t i = 0; i < loop_.carried(); ++i) {
      if (loop_.is_float(loop_.next[i])) std::swap(scope_.tensor(loop_.next[i] + "@SEED"), passed_[i]);
    }
    seed_collected(step);
    executor_->run({});
    for (std::size_t i = 0; i < loop_.inputs.size(); ++i) take(step, i);
    for (auto& [name, value] : step.kept) std::swap(scope_.tensor(name), value);
  }

  void take(const Tape::Step& step, std::size_t i) {
    const auto found = backward_.gradients.find(loop_.inputs[i]);
    const bool is_there = found != backward_.gradients.end();
    if (i < loop_.carried()) {
      if (!loop_.is_float(loop_.inputs[i])) return;
      is_there ? copy(executor_->tensor(found->second), passed_[i])
               : zeros(passed_[i], inputs_[i]->type(), step.before[i]);
    } else if (is_there && wanted_[i] != nullptr) {
      add(executor_->tensor(found->second), *wanted_[i]);
    }
  }

  const Operator& op_;
  Loop loop_;
  Backward backward_;
  Scope scope_;
  std::unique_ptr<Executor> executor_;
  const Tensor* number_ = nullptr;
  std::vector<const Tensor*> inputs_, given_;
  std::vector<Tensor*> wanted_;
  std::vector<Tensor> passed_;
  std::vector<std::int64_t> rows_;
  std::shared_ptr<Tape> tape_;
};

Kernel prepare_loop_gradient(const Preparation& p) {
  return [reverse = std::make_shared<Reverse>(p)] { reverse->run(); };
}

void loop_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  const Backward backward{Loop(op)};
  const bool is_nested = std::ranges::any_of(backward.program.operators(),
                                             [](const Operator& inner) { return inner.type == "loop_grad"; });
  if (is_nested) {
    fail(op, "a loop within it has a gradient, too",
         "let the inner loop have a number of steps that the script knows, or stop its gradient");
  }
  Operator gradient{
      .type = "loop_grad", .inputs = {op.outputs.back()}, .outputs = {}, .attributes = op.attributes};
  gradient.inputs.insert(gradient.inputs.end(), op.inputs.begin(), op.inputs.end());
  for (std::size_t i = 0; i + 1 < op.outputs.size(); ++i)
    gradient.inputs.push_back(builder.output_gradient(i));
  for (std::size_t i = 0; i < op.inputs.size(); ++i) gradient.outputs.push_back(builder.input_gradient(i));
  builder.append(std::move(gradient));
}

}  // namespace

std::span<const OperatorDefinition> loop_operators() {
  static constexpr OperatorDefinition all[] = {
      {"loop",
       infer_loop,
       prepare_loop,
       loop_gradient,
       {"(Condition bool, carried ..., captured ...) -> Condition, carried ..., collected [rows, ..] ..., "
        "Tape [1]",
        "the body's steps while Condition is true: what is carried goes from step to step, what is collected "
        "lies one step behind the other",
        "body: a program as words; takes: its inputs in this order; next: what it carries on; collected"}},
      {"loop_grad", infer_gradient, prepare_loop_gradient, nullptr},
  };
  return all;
}

}  // namespace fleetrun::engine
