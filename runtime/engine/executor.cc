// Every name is resolved to a tensor, and every operator to a kernel, when the executor is made; run() only
// copies the feed in and calls the kernels in the program's order, which is a topological order because
// append() requires inputs to exist. Temporaries keep their memory from run to run.

#include "runtime/engine/executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/random_bytes.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/random.h"

namespace fleetrun::engine {

struct Executor::State {
  struct Data {
    const Variable* variable;
    Tensor* tensor;
  };

  Program program;
  Scope& scope;
  std::map<std::string, Tensor> local;
  std::map<std::string, Tensor*> resolved;
  std::vector<Data> data;
  /// Persistable inputs that no operator before makes: they must have a value when a run begins.
  std::vector<Data> needed;
  std::set<std::string> named;  // of needed
  std::set<std::string> made;   // by the operators so far
  std::vector<Kernel> kernels;

  State(const Program& original, Scope& in_scope, RowSource* rows, const std::set<std::string>& own);
  Tensor* resolve(const std::string& name, const std::set<std::string>& own);
  void prepare(Operator& op, std::uint64_t seed, RowSource* rows, const std::set<std::string>& own);
};

namespace {

std::uint64_t run_seed(std::uint64_t program_seed) {
  return program_seed != 0 ? program_seed : random_number<std::uint64_t>();
}

/// Those of the program before passes, for errors; tensors have been resolved by then.
void restore_names(Operator& op) {
  auto names = attribute(op, std::string(kNamesAttribute), std::vector<std::string>());
  if (names.empty()) return;
  std::move(names.begin(), names.begin() + std::ssize(op.inputs), op.inputs.begin());
  std::move(names.begin() + std::ssize(op.inputs), names.end(), op.outputs.begin());
}

/// -1 stands for every size.
bool agrees(const Shape& declared, const Shape& shape) {
  return std::ranges::equal(
      declared, shape, [](std::int64_t wanted, std::int64_t size) { return wanted < 0 || wanted == size; });
}

/// Its sequences are all of its rows, once each.
bool has_whole_sequences(const Tensor& tensor) {
  const auto& offsets = tensor.offsets;
  return offsets.empty() || (!tensor.shape().empty() && offsets.front() == 0 &&
                             offsets.back() == static_cast<std::size_t>(tensor.shape()[0]) &&
                             std::is_sorted(offsets.begin(), offsets.end()));
}

void check_feed(const Variable& variable, const Tensor& fed) {
  const auto refuse = [&variable, &fed](const std::string& hint) {
    throw Error(ErrorKind::config,
                "'" + variable.name + "' is declared " + std::string(to_string(variable.type)) + " " +
                    to_string(variable.shape) + ", but was fed " + std::string(to_string(fed.type())) + " " +
                    to_string(fed.shape()),
                hint);
  };
  if (variable.type != fed.type()) refuse("convert the values to " + std::string(to_string(variable.type)));
  if (variable.lod_level > 0 && fed.offsets.empty()) refuse("a variable with lod_level needs offsets");
  // One value is what a variable without dimensions has; until Paddle 2.4 it was fed as [1].
  if (variable.shape.empty() && fed.size() == 1) return;
  if (!agrees(variable.shape, fed.shape())) refuse("reshape the values, or declare the variable as they are");
  if (!has_whole_sequences(fed))
    refuse("let its offsets begin with 0, rise, and end with the number of its rows");
}

/// Of a variable that is kept from run to run.
void check_kept(const Variable& variable, const Tensor& value) {
  if (value.data() == nullptr && value.shape().empty()) {
    throw Error(ErrorKind::config, "'" + variable.name + "' has no value",
                "run the startup program before the main program");
  }
  if (!has_whole_sequences(value))
    throw Error(ErrorKind::data, "the sequences of '" + variable.name + "' are not those of its rows");
  if (value.type() == variable.type && agrees(variable.shape, value.shape())) return;
  throw Error(ErrorKind::config,
              "'" + variable.name + "' is " + std::string(to_string(variable.type)) + " " +
                  to_string(variable.shape) + " in the program, and " + std::string(to_string(value.type())) +
                  " " + to_string(value.shape()) + " in the scope",
              "give it a value of the program's type and shape");
}

/// The error of a kernel, with the operator and the line of the script when it does not say them itself.
[[noreturn]] void rethrow_of(const Operator& op) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    fail(op, "there is not enough memory for its outputs");
  } catch (const std::length_error&) {
    fail(op, "there is not enough memory for its outputs");
  } catch (Error& error) {
    const bool is_of_values = error.kind() == ErrorKind::config || error.kind() == ErrorKind::data;
    if (is_of_values && error.context().empty()) {
      if (!std::string_view(error.what()).starts_with(op.type)) error.while_doing("computing " + op.type);
      if (!op.where.empty()) error.while_doing(op.where);
    }
    throw;
  }
}

}  // namespace

Executor::State::State(const Program& original, Scope& in_scope, RowSource* rows,
                       const std::set<std::string>& own)
    : program(original), scope(in_scope) {
  const std::uint64_t seed = run_seed(program.random_seed);
  kernels.reserve(program.operators().size());
  for (Operator& op : program.operators()) prepare(op, seed, rows, own);
}

Tensor* Executor::State::resolve(const std::string& name, const std::set<std::string>& own) {
  if (name.empty()) return nullptr;
  if (const auto found = resolved.find(name); found != resolved.end()) return found->second;
  const Variable& variable = program.variable(name);
  const bool shared = variable.persistable && !own.contains(name);
  Tensor* tensor = shared ? &scope.tensor(name) : &local[name];
  resolved.emplace(name, tensor);
  return tensor;
}

void Executor::State::prepare(Operator& op, std::uint64_t seed, RowSource* rows,
                              const std::set<std::string>& own) {
  const OperatorDefinition* definition = find_operator(op.type);
  if (definition == nullptr) throw Error(ErrorKind::config, "there is no operator '" + op.type + "'");
  std::vector<Tensor*> inputs, outputs;
  for (const std::string& name : op.inputs) {
    inputs.push_back(resolve(name, own));
    if (name.empty()) continue;
    const Variable& variable = program.variable(name);
    const bool is_given = variable.persistable || variable.is_data;
    if (!is_given || made.contains(name) || !named.insert(name).second) continue;
    (variable.is_data ? data : needed).push_back({&variable, inputs.back()});
  }
  for (const std::string& name : op.outputs) outputs.push_back(resolve(name, own));
  made.insert(op.outputs.begin(), op.outputs.end());
  restore_names(op);
  Preparation preparation(op, std::move(inputs), std::move(outputs));
  preparation.rows = rows;
  const auto own_seed = static_cast<std::uint64_t>(attribute(op, "seed", std::int64_t{0}));
  preparation.seed =
      stream_seed(own_seed != 0 ? own_seed : seed, op.outputs.empty() ? op.type : op.outputs[0]);
  kernels.push_back(definition->prepare(preparation));
}

Executor::Executor(const Program& program, Scope& scope, RowSource* rows, const std::set<std::string>& own)
    : state_(std::make_unique<State>(program, scope, rows, own)) {}

Executor::~Executor() = default;

void Executor::accept(const std::map<std::string, const Tensor*>& feed) {
  for (const State::Data& data : state_->data) {
    const auto found = feed.find(data.variable->name);
    if (found == feed.end() || found->second == nullptr) {
      throw Error(ErrorKind::config, "'" + data.variable->name + "' is not fed",
                  "feed every data variable that the program reads");
    }
    const Tensor& fed = *found->second;
    check_feed(*data.variable, fed);
    data.tensor->resize(fed.type(), fed.shape());
    data.tensor->offsets = fed.offsets;
    if (fed.bytes() > 0) std::memcpy(data.tensor->data(), fed.data(), fed.bytes());
  }
  for (const State::Data& value : state_->needed) check_kept(*value.variable, *value.tensor);
}

void Executor::compute(std::size_t index) {
  try {
    state_->kernels[index]();
  } catch (...) {
    rethrow_of(state_->program.operators()[index]);
  }
}

void Executor::run(const std::map<std::string, const Tensor*>& feed) {
  accept(feed);
  for (std::size_t i = 0; i < state_->kernels.size(); ++i) compute(i);
}

void Executor::run_with(const std::map<std::string, const Tensor*>& feed,
                        const std::function<void(std::size_t)>& before, const Observer& observer) {
  accept(feed);
  for (std::size_t i = 0; i < state_->kernels.size(); ++i) {
    before(i);
    observer ? run_observed(i, observer) : compute(i);
  }
}

void Executor::run(const std::map<std::string, const Tensor*>& feed, const Observer& observer) {
  accept(feed);
  for (std::size_t i = 0; i < state_->kernels.size(); ++i) run_observed(i, observer);
}

void Executor::run_observed(std::size_t index, const Observer& observer) {
  const auto start = std::chrono::steady_clock::now();
  compute(index);
  observer(state_->program.operators()[index],
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void Executor::expect_finite(const Operator& op, const std::function<std::string()>& run) const {
  for (const std::string& name : op.outputs) {
    if (name.empty() || tensor(name).type() != DataType::float32) continue;
    const auto values = tensor(name).values<float>();
    const auto found = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
    if (found == values.end()) continue;
    fail_on_data(
        op,
        op.type + " made " + (std::isnan(*found) ? "NaN" : "an infinity") + " in '" + name + "', in " + run(),
        "lower the learning rate, clip gradients, or look at that batch; without FLAGS_check_nan_inf "
        "training "
        "goes on");
  }
}

const Tensor& Executor::tensor(const std::string& name) const {
  const auto found = state_->resolved.find(name);
  if (found != state_->resolved.end()) return *found->second;
  if (const Tensor* persistable = state_->scope.find(name)) return *persistable;
  static_cast<void>(state_->program.variable(name));
  throw Error(ErrorKind::config, "no operator of the program reads or makes '" + name + "'");
}

Tensor& Executor::tensor(const std::string& name) {
  return const_cast<Tensor&>(static_cast<const Executor*>(this)->tensor(name));
}

}  // namespace fleetrun::engine
