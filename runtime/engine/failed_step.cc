#include "runtime/engine/failed_step.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include "runtime/base/codec.h"
#include "runtime/base/error.h"
#include "runtime/base/failed_batch.h"
#include "runtime/base/random_bytes.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/program_text.h"

namespace fleetrun::engine {
namespace {

constexpr std::string_view kGradientSuffix = "@GRAD";

template <class Archive, class Value>
void tensor_fields(Archive& archive, Value& tensor) {
  DataType type = tensor.type();
  Shape shape = tensor.shape();
  std::vector<std::uint64_t> offsets(tensor.offsets.begin(), tensor.offsets.end());
  std::string values(static_cast<const char*>(tensor.data()), tensor.bytes());
  codec::choice(archive, type, static_cast<int>(DataType::boolean));
  archive(shape, offsets, values);
  if constexpr (Archive::reads) {
    const bool fits = std::ranges::all_of(shape, [](std::int64_t size) { return size >= 0; }) &&
                      count(shape) <= static_cast<std::int64_t>(values.size()) &&
                      static_cast<std::size_t>(count(shape)) * size_of(type) == values.size();
    if (!fits) codec::refuse("a tensor has not as many values as its shape says");
    tensor.resize(type, shape);
    tensor.offsets.assign(offsets.begin(), offsets.end());
    if (!values.empty()) std::memcpy(tensor.data(), values.data(), values.size());
    if (type == DataType::boolean &&
        std::ranges::any_of(values, [](char value) { return (value & ~1) != 0; }))
      codec::refuse("a boolean is neither 0 nor 1");
  }
}

void write(codec::Writer& writer, const std::map<std::string, Tensor>& tensors) {
  writer.number(static_cast<std::uint32_t>(tensors.size()));
  for (const auto& [name, tensor] : tensors) {
    writer(name);
    tensor_fields(writer, tensor);
  }
}

void read(codec::Reader& reader, std::map<std::string, Tensor>& tensors) {
  std::uint32_t count = 0;
  for (reader.number(count); count > 0; --count) {
    std::string name;
    reader(name);
    tensor_fields(reader, tensors[name]);
  }
}

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorKind::data, "the program of this batch cannot be run again: " + why);
}

/// The rows that were looked up then, in the order of the calls.
class SameRows : public RowSource {
 public:
  explicit SameRows(const std::vector<LookedUp>& all) : all_(all) {}

  void pull_rows(const std::string& parameter, std::span<const std::uint64_t> keys,
                 std::span<float> rows) override {
    if (next_ == all_.size()) refuse("it looks up rows of '" + parameter + "' that were not looked up then");
    const LookedUp& one = all_[next_++];
    const auto values = one.rows.values<float>();
    if (one.parameter != parameter || !std::ranges::equal(one.keys, keys) || values.size() != rows.size())
      refuse("it looks up other rows of '" + parameter + "' than then");
    std::ranges::copy(values, rows.begin());
  }

 private:
  const std::vector<LookedUp>& all_;
  std::size_t next_ = 0;
};

/// Hands on the rows of another source, and keeps them.
class RecordedRows : public RowSource {
 public:
  RecordedRows(RowSource& source, std::vector<LookedUp>& kept) : source_(source), kept_(kept) {}

  void pull_rows(const std::string& parameter, std::span<const std::uint64_t> keys,
                 std::span<float> rows) override {
    source_.pull_rows(parameter, keys, rows);
    LookedUp& one = kept_.emplace_back();
    one.parameter = parameter;
    one.keys.assign(keys.begin(), keys.end());
    one.rows.resize(DataType::float32, {static_cast<std::int64_t>(rows.size())});
    std::ranges::copy(rows, one.rows.values<float>().begin());
  }

 private:
  RowSource& source_;
  std::vector<LookedUp>& kept_;
};

Tensor copy_of(const Tensor& tensor) {
  Tensor copy(tensor.type(), tensor.shape());
  copy.offsets = tensor.offsets;
  if (tensor.bytes() > 0) std::memcpy(copy.data(), tensor.data(), tensor.bytes());
  return copy;
}

/// nullptr where it has none.
const Tensor* value_in(const Executor& executor, const std::string& name) {
  try {
    const Tensor& value = executor.tensor(name);
    return value.data() == nullptr && value.shape().empty() ? nullptr : &value;
  } catch (const Error&) {
    return nullptr;
  }
}

bool is_of_values(const Error& error) {
  return error.kind() == ErrorKind::config || error.kind() == ErrorKind::data;
}

/// The kept variables of a program: those that a step reads before it makes them, and of these those that it
/// writes, too.
struct KeptNames {
  std::set<std::string> read, written;

  explicit KeptNames(const Program& program) {
    std::set<std::string> made;
    for (const Operator& op : program.operators()) {
      for (const std::string& name : op.inputs) {
        if (name.empty() || made.contains(name)) continue;
        const Variable& variable = program.variable(name);
        if (variable.persistable && !variable.is_data) read.insert(name);
      }
      for (const std::string& name : op.outputs) {
        if (read.contains(name)) written.insert(name);
        made.insert(name);
      }
    }
  }
};

bool calls_the_script(const Program& program) {
  return std::ranges::any_of(program.operators(),
                             [](const Operator& op) { return op.type.starts_with("call"); });
}

struct Failure {
  std::optional<Error> error;
  std::optional<std::uint64_t> op;
};

/// Runs `program` on what the step was fed and what was kept.
Failure run_on_copies(const FailedStep& step, const Program& program, RowSource* rows) {
  Scope scope;
  for (const auto& [name, value] : step.kept) scope.tensor(name) = copy_of(value);
  std::map<std::string, const Tensor*> feed;
  for (const auto& [name, value] : step.fed) feed[name] = &value;
  Failure failure;
  try {
    Executor executor(program, scope, rows);
    const auto look = [&](const Operator& op, double) {
      if (!step.not_finite_in.empty()) executor.expect_finite(op, [&] { return step.not_finite_in; });
    };
    executor.run_with(
        feed, [&failure](std::size_t op) { failure.op = op; }, look);
  } catch (const Error& error) {
    failure.error = error;
  }
  return failure;
}

/// Builds a recorded program as a script would build it.
class Builder {
 public:
  explicit Builder(const Program& recorded) : recorded_(recorded) {}

  /// Its first `wanted` operators.
  Program build(std::size_t wanted) {
    program_.random_seed = recorded_.random_seed;
    std::set<std::string> made;
    for (const Operator& op : recorded_.operators())
      if (has_role(op, "backward")) made.insert(op.outputs.begin(), op.outputs.end());
    for (const auto& [name, variable] : recorded_.variables())
      if (!made.contains(name)) program_.add_variable(variable);
    const std::vector<Operator>& all = recorded_.operators();
    while (program_.operators().size() < std::min(wanted, all.size())) {
      const Operator& next = all[program_.operators().size()];
      if (has_role(next, "backward"))
        append_backward_as(next);
      else
        append(next);
    }
    program_.operators().resize(std::min(wanted, all.size()));
    check_values_are_made(program_);
    return std::move(program_);
  }

 private:
  void append(const Operator& op) {
    if (find_operator(op.type) == nullptr) refuse("there is no operator '" + op.type + "'");
    check_from_outside(program_, op);
    program_.append(op);
  }

  void append_backward_as(const Operator& first) {
    const std::string seed = first.outputs.empty() ? "" : first.outputs.front();
    if (has_backward_ || !seed.ends_with(kGradientSuffix)) refuse("its gradients are not of one loss");
    has_backward_ = true;
    const std::size_t begin = program_.operators().size();
    append_backward(program_, seed.substr(0, seed.size() - kGradientSuffix.size()));
    const std::vector<Operator>&now = program_.operators(), &then = recorded_.operators();
    for (std::size_t i = begin; i < now.size(); ++i)
      if (i >= then.size() || now[i] != then[i]) refuse("its gradients are others than append_backward's");
  }

  const Program& recorded_;
  Program program_;
  bool has_backward_ = false;
};

}  // namespace

std::string to_bytes(const FailedStep& step) {
  codec::Writer writer;
  writer(to_words(step.program), step.failed, step.not_finite_in);
  write(writer, step.fed);
  write(writer, step.kept);
  writer.number(static_cast<std::uint32_t>(step.looked_up.size()));
  for (const LookedUp& one : step.looked_up) {
    writer(one.parameter, one.keys);
    tensor_fields(writer, one.rows);
  }
  return writer.take();
}

FailedStep parse_failed_step(std::string_view bytes) {
  codec::Reader reader(bytes);
  FailedStep step;
  std::vector<std::string> words;
  reader(words, step.failed, step.not_finite_in);
  step.program = program_of_words(words);
  read(reader, step.fed);
  read(reader, step.kept);
  std::uint32_t lookups = 0;
  for (reader.number(lookups); lookups > 0; --lookups) {
    LookedUp& one = step.looked_up.emplace_back();
    reader(one.parameter, one.keys);
    tensor_fields(reader, one.rows);
    if (one.rows.type() != DataType::float32) codec::refuse("rows are not float32");
  }
  reader.end();
  return step;
}

std::string run_again(const FailedStep& step) {
  const std::size_t all = step.program.operators().size();
  const std::size_t wanted = step.failed ? std::min<std::size_t>(*step.failed, all) + 1 : all;
  SameRows rows(step.looked_up);
  const Failure failure = run_on_copies(step, Builder(step.program).build(wanted), &rows);
  return failure.error ? failure.error->what() : std::string();
}

StepKeeper::StepKeeper(const Program& program, RowSource* rows, const Executor& executor)
    : program_(program), rows_(rows), executor_(executor), keeps_(!failed_batch_file().empty()) {}

void StepKeeper::expect_finite() {
  looks_for_nan_ = true;
  if (keeps_) written_ = KeptNames(program_).written;
}

void StepKeeper::begin() {
  for (const std::string& name : written_)
    if (const Tensor* value = value_in(executor_, name)) before_[name] = copy_of(*value);
}

void StepKeeper::keep(const Error& error, const std::map<std::string, const Tensor*>& feed,
                      const std::string& not_finite_in) const noexcept {
  if (!keeps_ || !is_of_values(error) || calls_the_script(program_)) return;
  try {
    FailedStep step;
    step.program = program_;
    if (step.program.random_seed == 0) step.program.random_seed = random_number<std::uint64_t>() | 1;
    for (Operator& op : step.program.operators()) op.where.clear();
    step.not_finite_in = not_finite_in;
    std::size_t bytes = 0;
    const auto take = [&bytes](std::map<std::string, Tensor>& to, const std::string& name,
                               const Tensor& value) {
      bytes += value.bytes();
      if (bytes <= kMaxFailedBatch) to[name] = copy_of(value);
    };
    for (const auto& [name, value] : feed)
      if (value != nullptr) take(step.fed, name, *value);
    for (const std::string& name : KeptNames(program_).read) {
      const auto found = before_.find(name);
      const Tensor* value = found != before_.end() ? &found->second : value_in(executor_, name);
      if (value != nullptr) take(step.kept, name, *value);
    }
    if (bytes > kMaxFailedBatch) return;
    std::optional<RecordedRows> rows;
    if (rows_ != nullptr) rows.emplace(*rows_, step.looked_up);
    const Failure failure = run_on_copies(step, step.program, rows ? &*rows : nullptr);
    if (!failure.error || !is_of_values(*failure.error)) return;
    step.failed = failure.op;
    keep_failed_batch({FailedBatch::Kind::step, failure.error->what(), to_bytes(step)});
  } catch (const std::exception&) {
    // The error that is on its way says more.
  }
}

}  // namespace fleetrun::engine
