#include "runtime/engine/passes/reduce_schedule.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/step_gradients.h"

namespace fleetrun::engine {

namespace {

/// A gradient's life between backward and update, as indexes of operators.
struct Span {
  std::size_t made = 0;
  std::size_t read = 0;
};

std::map<std::string, Span> spans_of(const Program& program, std::span<const StepGradient> gradients) {
  std::map<std::string, Span> spans;
  const auto& operators = program.operators();
  for (const StepGradient& gradient : gradients) {
    Span span{gradient.last_writer, gradient.last_writer};
    do {
      ++span.read;
    } while (!is_update(operators[span.read]) ||
             std::ranges::find(operators[span.read].inputs, gradient.name) ==
                 operators[span.read].inputs.end());
    spans[gradient.name] = span;
  }
  return spans;
}

Operator reduce_operator(const char* step, std::vector<std::string> inputs,
                         std::vector<std::string> outputs) {
  return {.type = std::string("reduce_") + step,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .attributes = {{std::string(kRoleAttribute), std::string("backward")}}};
}

/// Operators to be put before those of an index.
using Insertions = std::map<std::size_t, std::vector<Operator>>;

void insert_bucket(const ReduceBucket& bucket, std::size_t index, const std::map<std::string, Span>& spans,
                   Insertions& insertions) {
  std::size_t made = 0, read = static_cast<std::size_t>(-1);
  for (const std::string& name : bucket) {
    const auto span = spans.find(name);
    if (span == spans.end()) {
      throw Error(ErrorKind::config, "bucket " + std::to_string(index) + " has '" + name +
                                         "', which is not a gradient of the program");
    }
    made = std::max(made, span->second.made);
    read = std::min(read, span->second.read);
  }
  for (const bool starts : {true, false}) {
    Operator op = starts ? reduce_operator("start", bucket, {}) : reduce_operator("wait", {}, bucket);
    op.attributes["bucket"] = static_cast<std::int64_t>(index);
    insertions[starts ? made + 1 : read].push_back(std::move(op));
  }
}

void infer_reduce(Inference& inference) {
  inference.fail("is made by passes only");
}
Kernel prepare_reduce(const Preparation&) {
  return [] {};
}

constexpr OperatorDefinition kReduceOperators[] = {
    {"reduce_start", infer_reduce, prepare_reduce, nullptr},
    {"reduce_wait", infer_reduce, prepare_reduce, nullptr},
    {"reduce_rest", infer_reduce, prepare_reduce, nullptr},
};
[[maybe_unused]] const bool kReduceOperatorsAdded = (add_operators(kReduceOperators), true);

}  // namespace

Program schedule_reduction(const Program& program, std::span<const ReduceBucket> buckets) {
  const std::vector<StepGradient> gradients = gradients_of(program);
  const std::map<std::string, Span> spans = spans_of(program, gradients);
  Insertions insertions;
  for (std::size_t i = 0; i < buckets.size(); ++i) insert_bucket(buckets[i], i, spans, insertions);
  std::vector<std::string> rest;
  std::size_t first_read = static_cast<std::size_t>(-1);
  for (const StepGradient& gradient : gradients) {
    const auto has = [&](const ReduceBucket& bucket) {
      return std::ranges::find(bucket, gradient.name) != bucket.end();
    };
    if (std::ranges::any_of(buckets, has)) continue;
    rest.push_back(gradient.name);
    first_read = std::min(first_read, spans.at(gradient.name).read);
  }
  if (!rest.empty()) insertions[first_read].push_back(reduce_operator("rest", {}, std::move(rest)));

  Program scheduled = program;
  auto& operators = scheduled.operators();
  operators.clear();
  for (std::size_t i = 0; i < program.operators().size(); ++i) {
    if (const auto found = insertions.find(i); found != insertions.end())
      operators.insert(operators.end(), found->second.begin(), found->second.end());
    operators.push_back(program.operators()[i]);
  }
  return scheduled;
}

}  // namespace fleetrun::engine
