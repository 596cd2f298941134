#include "runtime/gradient_exchange.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"

namespace fleetrun::runtime {

namespace {

using collective::Call;
using collective::CallKind;
using collective::Communicator;
using engine::Operator;
using engine::Program;
using engine::Tensor;

bool is_update(const Operator& op) {
  return engine::attribute(op, std::string(engine::kRoleAttribute), std::string()) == "update";
}

/// A gradient that an update operator reads.
struct Gradient {
  std::string parameter;
  std::string name;
  std::string keys;  // empty: dense
  std::size_t count = 0;
  std::size_t last_writer = 0;  // index of an operator
};

std::vector<Gradient> gradients_of(const Program& program) {
  std::map<std::string, std::size_t> writers;
  std::vector<Gradient> gradients;
  const auto& operators = program.operators();
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = operators[i];
    if (op.type == "sparse_embedding") {
      throw Error(ErrorKind::config, "collective training of a program with sparse_embedding",
                  "use paddle.nn.Embedding, or train with a parameter server");
    }
    if (!is_update(op)) {
      for (const std::string& output : op.outputs) writers[output] = i;
      continue;
    }
    const auto elements = engine::count(program.variable(op.inputs.at(0)).shape);
    gradients.push_back({op.inputs[0], op.inputs.at(1), op.inputs.at(2), static_cast<std::size_t>(elements),
                         writers[op.inputs[1]]});
  }
  std::ranges::stable_sort(gradients, {}, &Gradient::last_writer);
  return gradients;
}

/// Dense gradients behind each other.
struct Bucket {
  std::vector<Tensor*> parts;
  std::vector<float> values;
  std::size_t last_writer = 0;
  Communicator* communicator = nullptr;
  std::unique_ptr<collective::Work> work;

  void start() {
    float* place = values.data();
    for (const Tensor* part : parts) {
      std::memcpy(place, part->data(), part->bytes());
      place += part->bytes() / sizeof(float);
    }
    work = communicator->start({.kind = CallKind::all_reduce,
                                .operation = collective::Operation::avg,
                                .input = values.data(),
                                .output = values.data(),
                                .count = values.size()});
  }

  void finish() {
    std::exchange(work, nullptr)->wait();
    const float* place = values.data();
    for (Tensor* part : parts) {
      std::memcpy(part->data(), place, part->bytes());
      place += part->bytes() / sizeof(float);
    }
  }
};

/// Rows of all ranks behind each other, divided by the number of ranks.
void gather_rows(Communicator& communicator, Tensor& keys, Tensor& values) {
  const auto ranks = static_cast<std::size_t>(communicator.place().size);
  std::vector<std::int64_t> rows(ranks);
  const std::int64_t own = keys.shape().at(0);
  collective::all_gather(communicator, {&own, 1, collective::DataType::int64},
                         {rows.data(), ranks, collective::DataType::int64});
  const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const std::int64_t width = values.shape().at(1);
  const auto gather = [&](Tensor& tensor, std::int64_t row, collective::DataType type,
                          const engine::Shape& shape) {
    std::vector<std::size_t> counts;
    for (const std::int64_t count : rows) counts.push_back(static_cast<std::size_t>(count * row));
    const auto* begin = static_cast<const std::byte*>(tensor.data());
    const std::vector<std::byte> given(begin, begin + tensor.bytes());
    tensor.resize(tensor.type(), shape);
    collective::all_gather(communicator, {given.data(), static_cast<std::size_t>(own * row), type},
                           {tensor.data(), static_cast<std::size_t>(all * row), type}, counts);
  };
  gather(keys, 1, collective::DataType::int64, {all});
  gather(values, width, collective::DataType::float32, {all, width});
  float* value = static_cast<float*>(values.data());
  for (std::int64_t i = 0; i < all * width; ++i) value[i] /= static_cast<float>(ranks);
}

}  // namespace

struct GradientExchange::State {
  engine::Executor& executor;
  std::vector<Communicator*> communicators;
  std::vector<Bucket> buckets;                    // by last writer
  std::vector<std::pair<Tensor*, Tensor*>> rows;  // keys, values
  std::optional<std::size_t> first_update;
  std::size_t next = 0;

  void before(std::size_t index) {
    for (; next < buckets.size() && buckets[next].last_writer < index; ++next) buckets[next].start();
    if (index != first_update) return;
    for (Bucket& bucket : buckets) bucket.finish();
    for (const auto& [keys, values] : rows) gather_rows(*communicators.front(), *keys, *values);
  }
};

GradientExchange::GradientExchange(const Program& program, engine::Executor& executor,
                                   std::vector<Communicator*> communicators,
                                   const collective::BucketRule& rule)
    : state_(new State{executor, std::move(communicators), {}, {}, {}, 0}) {
  const std::vector<Gradient> gradients = gradients_of(program);
  std::vector<collective::GradientShape> shapes;
  for (const Gradient& gradient : gradients) {
    shapes.push_back(
        {gradient.parameter, gradient.count, collective::DataType::float32, !gradient.keys.empty()});
    if (gradient.keys.empty()) continue;
    state_->rows.emplace_back(&executor.tensor(gradient.keys), &executor.tensor(gradient.name));
  }
  for (const auto& indices : collective::plan_buckets(shapes, rule)) {
    Bucket& bucket = state_->buckets.emplace_back();
    std::size_t count = 0;
    for (const std::size_t index : indices) {
      bucket.parts.push_back(&executor.tensor(gradients[index].name));
      bucket.last_writer = std::max(bucket.last_writer, gradients[index].last_writer);
      count += gradients[index].count;
    }
    bucket.values.resize(count);
    bucket.communicator = state_->communicators[(state_->buckets.size() - 1) % state_->communicators.size()];
  }
  std::ranges::stable_sort(state_->buckets, {}, &Bucket::last_writer);
  const auto update = std::ranges::find_if(program.operators(), is_update);
  if (update != program.operators().end()) {
    state_->first_update = static_cast<std::size_t>(update - program.operators().begin());
  }
}

GradientExchange::~GradientExchange() = default;

void GradientExchange::run(const std::map<std::string, const Tensor*>& feed) {
  state_->next = 0;
  state_->executor.run_with(feed, [this](std::size_t index) { state_->before(index); });
}

std::size_t GradientExchange::buckets() const noexcept {
  return state_->buckets.size();
}

}  // namespace fleetrun::runtime
