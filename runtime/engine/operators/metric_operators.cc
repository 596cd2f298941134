// Metrics; no gradients.
//
// The area of auc is the sum of trapezoids over the buckets, 0 while one class is missing. Threads that share
// the counters add to them atomically.

#include <algorithm>
#include <atomic>
#include <numeric>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/choice.h"

namespace fleetrun::engine {

namespace {

void infer_accuracy(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 3);
  inference.expect_type(0, DataType::float32);
  inference.expect_type(1, DataType::int64);
  if (inference.input(0).shape.size() != 2) inference.fail("the prediction must have the shape [N, classes]");
  if (attribute(inference.op(), "k", std::int64_t{1}) < 1) inference.fail("k is below 1");
  inference.set_output(0, DataType::float32, {});
  for (std::size_t i = 1; i < inference.op().outputs.size(); ++i)
    inference.set_output(i, DataType::int64, {});
}

/// Whether one of the k largest of a row is at `wanted`; `places` is memory to work in. Only where equal ones
/// stand at the edge is there a choice to make.
bool is_among_first(const float* row, std::size_t wanted, std::int64_t k, std::vector<std::int64_t>& places) {
  std::int64_t above = 0, equal = 0;
  for (std::size_t c = 0; c < places.size(); ++c) {
    above += row[c] > row[wanted] ? 1 : 0;
    equal += row[c] == row[wanted] ? 1 : 0;
  }
  if (above >= k || above + equal <= k) return above < k;
  std::iota(places.begin(), places.end(), std::int64_t{0});
  choose(k, places, [row](std::int64_t a, std::int64_t b) { return row[a] > row[b]; });
  return std::find(places.begin(), places.begin() + k, static_cast<std::int64_t>(wanted)) !=
         places.begin() + k;
}

Kernel prepare_accuracy(const Preparation& p) {
  return [op = &p.op, x = p.input(0), label = p.input(1), out = p.output(0), correct = p.output(1),
          total = p.output(2), k = attribute(p.op, "k", std::int64_t{1}),
          places = std::vector<std::int64_t>()]() mutable {
    const auto rows = static_cast<std::size_t>(x->shape()[0]);
    const auto classes = static_cast<std::size_t>(x->shape()[1]);
    if (label->size() != rows) {
      fail(*op, "the prediction is " + to_string(x->shape()) + ", the label " + to_string(label->shape()));
    }
    const float* row = x->values<float>().data();
    places.resize(classes);
    std::int64_t hits = 0;
    for (const std::int64_t wanted : label->values<std::int64_t>()) {
      if (wanted >= 0 && static_cast<std::size_t>(wanted) < classes) {
        hits += is_among_first(row, static_cast<std::size_t>(wanted), k, places) ? 1 : 0;
      }
      row += classes;
    }
    out->resize(DataType::float32, {});
    out->values<float>()[0] = rows == 0 ? 0.0f : static_cast<float>(hits) / static_cast<float>(rows);
    for (Tensor* target : {correct, total}) {
      if (target == nullptr) continue;
      target->resize(DataType::int64, {});
      target->values<std::int64_t>()[0] = target == correct ? hits : static_cast<std::int64_t>(rows);
    }
  };
}

struct AucLayout {
  std::int64_t thresholds;
  std::int64_t steps;
  bool slide;

  explicit AucLayout(const Operator& op)
      : thresholds(attribute(op, "num_thresholds", std::int64_t{4095})),
        steps(attribute(op, "slide_steps", std::int64_t{0})),
        slide(attribute(op, "slide", false)) {}

  std::size_t buckets() const { return static_cast<std::size_t>(thresholds) + 1; }
  std::size_t window() const { return static_cast<std::size_t>(steps); }
  std::size_t counters() const { return steps == 0 ? buckets() : (window() + 1) * buckets() + 1; }
};

void infer_auc(Inference& inference) {
  inference.expect_inputs(4, 4);
  inference.expect_outputs(3, 3);
  inference.expect_type(0, DataType::float32);
  const AucLayout layout(inference.op());
  if (attribute(inference.op(), "curve", std::string("ROC")) != "ROC") {
    inference.fail("only the ROC curve is known");
  }
  if (layout.thresholds < 1 || layout.steps < 0) inference.fail("num_thresholds or slide_steps is too small");
  const Variable& prediction = inference.input(0);
  if (prediction.shape.size() != 2 || prediction.shape[1] < 1 || prediction.shape[1] > 2) {
    inference.fail("the prediction must have the shape [N, 2] or [N, 1]");
  }
  for (std::size_t i = 1; i < 4; ++i) inference.expect_type(i, DataType::int64);
  for (std::size_t i = 2; i < 4; ++i) {
    const std::int64_t counters = count(inference.input(i).shape);
    if (counters != static_cast<std::int64_t>(layout.counters())) {
      inference.fail("'" + inference.op().inputs[i] + "' has " + std::to_string(counters) +
                     " counters, needs " + std::to_string(layout.counters()));
    }
  }
  inference.set_output(0, DataType::float64, {});
  for (std::size_t i = 1; i < 3; ++i) inference.set_output(i, DataType::int64, inference.input(i + 1).shape);
}

void add(std::int64_t& counter, std::int64_t amount) {
  if (amount != 0) std::atomic_ref(counter).fetch_add(amount, std::memory_order_relaxed);
}

std::int64_t load(std::int64_t& counter) {
  return std::atomic_ref(counter).load(std::memory_order_relaxed);
}

/// Adds a batch to the counters; returns the stretch that holds the counts to be used.
std::span<std::int64_t> account(const AucLayout& layout, std::span<std::int64_t> counters,
                                const std::vector<std::int64_t>& batch) {
  const std::size_t buckets = layout.buckets();
  if (layout.steps == 0) {
    for (std::size_t b = 0; b < buckets; ++b) add(counters[b], batch[b]);
    return counters.first(buckets);
  }
  std::int64_t& seen = counters[counters.size() - 1];
  const auto step = static_cast<std::size_t>(std::atomic_ref(seen).fetch_add(1)) % layout.window();
  const auto oldest = counters.subspan(step * buckets, buckets);
  const auto sum = counters.subspan(layout.window() * buckets, buckets);
  for (std::size_t b = 0; b < buckets; ++b) {
    const std::int64_t before = std::atomic_ref(oldest[b]).exchange(batch[b], std::memory_order_relaxed);
    add(sum[b], batch[b] - before);
  }
  return sum;
}

void replace(std::span<std::int64_t> counters, std::span<const std::int64_t> batch) {
  for (std::size_t b = 0; b < batch.size(); ++b) {
    std::atomic_ref(counters[b]).store(batch[b], std::memory_order_relaxed);
  }
}

double area(std::span<std::int64_t> positive, std::span<std::int64_t> negative) {
  double total_positive = 0, total_negative = 0, doubled = 0;
  for (std::size_t b = positive.size(); b-- > 0;) {
    const auto p = static_cast<double>(load(positive[b])), n = static_cast<double>(load(negative[b]));
    doubled += n * (2.0 * total_positive + p);
    total_positive += p;
    total_negative += n;
  }
  if (total_positive <= 0.0 || total_negative <= 0.0) return 0.0;
  return doubled / 2.0 / total_positive / total_negative;
}

Kernel prepare_auc(const Preparation& p) {
  const AucLayout layout(p.op);
  return [op = &p.op, prediction = p.input(0), label = p.input(1), auc = p.output(0), positive = p.output(1),
          negative = p.output(2), layout, batch_positive = std::vector<std::int64_t>(layout.buckets()),
          batch_negative = std::vector<std::int64_t>(layout.buckets())]() mutable {
    const auto labels = label->values<std::int64_t>();
    const auto probabilities = prediction->values<float>();
    const auto width = static_cast<std::size_t>(prediction->shape()[1]);
    if (labels.size() * width != probabilities.size()) {
      fail(*op, "the prediction is " + to_string(prediction->shape()) + ", the label " +
                    to_string(label->shape()));
    }
    std::fill(batch_positive.begin(), batch_positive.end(), 0);
    std::fill(batch_negative.begin(), batch_negative.end(), 0);
    for (std::size_t r = 0; r < labels.size(); ++r) {
      const float p1 = probabilities[r * width + width - 1];
      if (!(p1 >= 0.0f && p1 <= 1.0f)) {
        fail_on_data(
            *op,
            "auc: the prediction " + std::to_string(p1) + " in '" + op->inputs[0] + "' is not a probability",
            "give it the output of softmax or sigmoid");
      }
      const auto bucket = static_cast<std::size_t>(p1 * static_cast<float>(layout.thresholds));
      ++(labels[r] > 0 ? batch_positive : batch_negative)[bucket];
    }
    auc->resize(DataType::float64, {});
    if (layout.slide) {
      replace(positive->values<std::int64_t>(), batch_positive);
      replace(negative->values<std::int64_t>(), batch_negative);
      auc->values<double>()[0] = area(batch_positive, batch_negative);
      return;
    }
    const auto p_counts = account(layout, positive->values<std::int64_t>(), batch_positive);
    const auto n_counts = account(layout, negative->values<std::int64_t>(), batch_negative);
    auc->values<double>()[0] = area(p_counts, n_counts);
  };
}

}  // namespace

std::span<const OperatorDefinition> metric_operators() {
  static constexpr OperatorDefinition all[] = {
      {"accuracy",
       infer_accuracy,
       prepare_accuracy,
       nullptr,
       {"(Prediction [N, C], Label int64 [N, 1]) -> Accuracy [], Correct int64 [] optional, Total int64 [] "
        "optional",
        "share of examples whose label is among the k largest, earlier classes first among equals", "k = 1"}},
      {"auc",
       infer_auc,
       prepare_auc,
       nullptr,
       {"(Prediction [N, 1 or 2], Label int64 [N, 1], StatPos, StatNeg) -> Auc float64 [], StatPos, "
        "StatNeg",
        "area under the curve; the last column is the probability of 1, and falls into bucket floor(p * "
        "T); StatPos and StatNeg are persistable int64 counters: [T + 1] of all batches for S = 0, else "
        "[(S + 1)(T + 1) + 1] of each of the last S batches, their sum, and the batches seen",
        "num_thresholds (T) = 4095; slide_steps (S) = 0; slide = false: true for [T + 1] counters of the "
        "last batch alone, whose Auc it is; curve = ROC"}},
  };
  return all;
}

}  // namespace fleetrun::engine
