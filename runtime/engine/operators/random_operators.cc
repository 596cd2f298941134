// Random numbers of a main program: new ones in every run, but those of a seed of the operator's own. Seeds
// as in initializer_operators.cc.

#include <cmath>
#include <numeric>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/axes.h"
#include "runtime/engine/operators/draws.h"
#include "runtime/engine/operators/numbers.h"
#include "runtime/engine/operators/typed.h"

namespace fleetrun::engine {

namespace {

DataType made_type(const Operator& op) {
  return parse_data_type(attribute(op, "dtype", std::string("float32")));
}

void infer_random(Inference& inference) {
  const Operator& op = inference.op();
  inference.expect_outputs(1, 1);
  const auto kind = attribute(op, "kind", std::string("uniform"));
  if (kind != "uniform" && kind != "normal" && kind != "integer") {
    inference.fail("there is no kind '" + kind + "'", "use uniform, normal or integer");
  }
  if (kind == "integer" && attribute(op, "first", 0.0) >= attribute(op, "second", 1.0)) {
    inference.fail("there is no integer from low up to high");
  }
  inference.set_output(0, made_type(op), Numbers(op, "shape").declared());
}

Kernel prepare_random(const Preparation& p) {
  return [op = &p.op, out = p.output(0), inputs = inputs_of(p), shape = Numbers(p.op, "shape"),
          draws = Draws(p), kind = attribute(p.op, "kind", std::string("uniform")),
          first = attribute(p.op, "first", 0.0), second = attribute(p.op, "second", 1.0)]() mutable {
    out->resize(made_type(*op), shape.read(inputs));
    draws.begin_run();
    const auto draw = [&] {
      if (kind == "normal") return first + second * draws.normal();
      const double value = first + (second - first) * draws.uniform();
      return kind == "integer" ? std::floor(value) : value;
    };
    with_type(out->type(), [&]<class T>(T) {
      for (T& value : out->values<T>()) value = static_cast<T>(draw());
    });
  };
}

void infer_bernoulli(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  const Shape shape = inference.input(0).shape;
  inference.set_output(0, DataType::float32, shape);
}

Kernel prepare_bernoulli(const Preparation& p) {
  return [x = p.input(0), out = p.output(0), draws = Draws(p)]() mutable {
    draws.begin_run();
    out->resize(DataType::float32, x->shape());
    const auto probability = x->values<float>();
    const auto to = out->values<float>();
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = draws.uniform() < double(probability[i]) ? 1.0f : 0.0f;
    }
  };
}

Shape samples_shape(const Operator& op, const Shape& x) {
  Shape shape = x;
  shape.back() = attribute(op, "num_samples", std::int64_t{1});
  return shape;
}

void infer_multinomial(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  const Shape& x = inference.input(0).shape;
  const auto samples = attribute(inference.op(), "num_samples", std::int64_t{1});
  if (x.empty() || samples < 1) inference.fail("num_samples and the last dimension must be 1 or more");
  const bool once = !attribute(inference.op(), "replacement", false);
  if (once && x.back() >= 0 && samples > x.back()) {
    inference.fail(std::to_string(samples) + " samples of " + std::to_string(x.back()) + " places",
                   "draw fewer, or set replacement=True");
  }
  inference.set_output(0, DataType::int64, samples_shape(inference.op(), x));
}

/// The place at which the running sum passes `at`; the last one with a weight when rounding kept it below.
std::size_t place_of(std::span<const double> weights, double at) {
  double sum = 0.0;
  std::size_t last = 0;
  for (std::size_t c = 0; c < weights.size(); ++c) {
    if (weights[c] <= 0.0) continue;
    last = c;
    sum += weights[c];
    if (at < sum) return c;
  }
  return last;
}

Kernel prepare_multinomial(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), draws = Draws(p),
          once = !attribute(p.op, "replacement", false), weights = std::vector<double>()]() mutable {
    draws.begin_run();
    out->resize(DataType::int64, samples_shape(*op, x->shape()));
    const auto classes = static_cast<std::size_t>(x->shape().back());
    const auto samples = static_cast<std::size_t>(out->shape().back());
    const auto to = out->values<std::int64_t>();
    const float* from = x->values<float>().data();
    for (std::size_t at = 0; at < to.size(); at += samples, from += classes) {
      weights.assign(from, from + classes);
      for (std::size_t k = 0; k < samples; ++k) {
        const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
        if (!(total > 0.0)) fail(*op, "no probability is left to draw from", "use probabilities above 0");
        const std::size_t place = place_of(weights, total * draws.uniform());
        to[at + k] = static_cast<std::int64_t>(place);
        if (once) weights[place] = 0.0;
      }
    }
  };
}

void infer_permutation(Inference& inference) {
  inference.expect_inputs(0, 0);
  inference.expect_outputs(1, 1);
  const auto n = attribute<std::int64_t>(inference.op(), "n");
  if (n < 0) inference.fail("there is no order of " + std::to_string(n) + " numbers");
  inference.set_output(0, DataType::int64, {n});
}

Kernel prepare_permutation(const Preparation& p) {
  return [out = p.output(0), n = attribute<std::int64_t>(p.op, "n"), draws = Draws(p)]() mutable {
    draws.begin_run();
    out->resize(DataType::int64, {n});
    const auto to = out->values<std::int64_t>();
    std::iota(to.begin(), to.end(), std::int64_t{0});
    for (std::size_t left = to.size(); left > 1; --left) {
      const auto other = static_cast<std::size_t>(draws.uniform() * double(left));
      std::swap(to[left - 1], to[other]);
    }
  };
}

}  // namespace

std::span<const OperatorDefinition> random_operators() {
  static constexpr OperatorDefinition all[] = {
      {"random",
       infer_random,
       prepare_random,
       nullptr,
       {"(numbers ...) -> Out", "random numbers",
        "shape; dtype = float32; kind: `uniform` (first, second: low and high), `normal` (mean and "
        "deviation), or `integer` (from first up to, without, second); seed = 0: another one draws the same "
        "in "
        "every run"}},
      {"bernoulli",
       infer_bernoulli,
       prepare_bernoulli,
       nullptr,
       {"(P) -> Out float32", "1 with probability P, else 0"}},
      {"multinomial",
       infer_multinomial,
       prepare_multinomial,
       nullptr,
       {"(P [.., C]) -> Out int64 [.., num_samples]", "places drawn in proportion to P",
        "num_samples = 1; replacement = false: each at most once"}},
      {"permutation",
       infer_permutation,
       prepare_permutation,
       nullptr,
       {"() -> Out int64 [n]", "0 to n-1 in random order", "n"}},
  };
  return all;
}

}  // namespace fleetrun::engine
