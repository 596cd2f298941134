// First values, for startup programs. Random ones are float32; their values are a function of (seed, name of
// Out, position): `seed` is the operator's attribute when it is not 0, else the program's random_seed; when
// that is 0 too, each executor draws one.

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/typed.h"
#include "runtime/engine/random.h"

namespace fleetrun::engine {

namespace {

DataType type_of(const Operator& op) {
  return parse_data_type(attribute(op, "dtype", std::string("float32")));
}

void infer_initializer(Inference& inference) {
  inference.expect_inputs(0, 0);
  inference.expect_outputs(1, 1);
  const auto shape = attribute<std::vector<std::int64_t>>(inference.op(), "shape");
  if (count(shape) < 0) inference.fail("the shape " + to_string(shape) + " has an unknown dimension");
  const DataType type = type_of(inference.op());
  const bool random = inference.op().type.find("random") != std::string::npos;
  if (type != DataType::float32 && random) {
    inference.fail("random values are float32");
  }
  inference.set_output(0, type, shape);
}

Kernel prepare_fill_constant(const Preparation& p) {
  return [out = p.output(0), shape = attribute<std::vector<std::int64_t>>(p.op, "shape"),
          type = type_of(p.op), value = attribute(p.op, "value", 0.0)] {
    out->resize(type, shape);
    const auto fill = [&]<class T>(T) {
      for (T& each : out->values<T>()) each = static_cast<T>(value);
    };
    with_type(type, fill);
  };
}

/// first + second * draw(k)
template <double (*kDraw)(std::uint64_t, std::uint64_t) noexcept>
Kernel prepare_random(const Preparation& p, double first, double second) {
  return [out = p.output(0), shape = attribute<std::vector<std::int64_t>>(p.op, "shape"), seed = p.seed,
          first, second] {
    out->resize(DataType::float32, shape);
    std::uint64_t k = 0;
    for (float& value : out->values<float>()) value = static_cast<float>(first + second * kDraw(seed, k++));
  };
}

Kernel prepare_uniform(const Preparation& p) {
  const double low = attribute(p.op, "min", -1.0);
  return prepare_random<uniform>(p, low, attribute(p.op, "max", 1.0) - low);
}

template <double (*kDraw)(std::uint64_t, std::uint64_t) noexcept>
Kernel prepare_gaussian(const Preparation& p) {
  return prepare_random<kDraw>(p, attribute(p.op, "mean", 0.0), attribute(p.op, "std", 1.0));
}

void infer_assign_value(Inference& inference) {
  infer_initializer(inference);
  const Operator& op = inference.op();
  const auto values = attribute<std::vector<double>>(op, "values").size();
  const auto shape = attribute<std::vector<std::int64_t>>(op, "shape");
  if (static_cast<std::int64_t>(values) != count(shape)) {
    inference.fail(std::to_string(values) + " values for the shape " + to_string(shape));
  }
}

Kernel prepare_assign_value(const Preparation& p) {
  return [out = p.output(0), shape = attribute<std::vector<std::int64_t>>(p.op, "shape"),
          type = type_of(p.op), values = attribute<std::vector<double>>(p.op, "values")] {
    out->resize(type, shape);
    with_type(type, [&]<class T>(T) {
      std::size_t k = 0;
      for (T& value : out->values<T>()) value = static_cast<T>(values[k++]);
    });
  };
}

}  // namespace

std::span<const OperatorDefinition> initializer_operators() {
  static constexpr OperatorDefinition all[] = {
      {"fill_constant",
       infer_initializer,
       prepare_fill_constant,
       nullptr,
       {"() -> Out", "one value", "shape; value = 0; dtype = float32"}},
      {"uniform_random",
       infer_initializer,
       prepare_uniform,
       nullptr,
       {"() -> Out", "uniform random numbers", "shape; min = -1; max = 1; seed = 0"}},
      {"gaussian_random",
       infer_initializer,
       prepare_gaussian<normal>,
       nullptr,
       {"() -> Out", "normal random numbers", "shape; mean = 0; std = 1; seed = 0"}},
      {"truncated_gaussian_random",
       infer_initializer,
       prepare_gaussian<truncated_normal>,
       nullptr,
       {"() -> Out", "normal random numbers, drawn again beyond two standard deviations",
        "shape; mean = 0; std = 1; seed = 0"}},
      {"assign_value",
       infer_assign_value,
       prepare_assign_value,
       nullptr,
       {"() -> Out", "given values", "shape; values: as many, row-major; dtype = float32"}},
  };
  return all;
}

}  // namespace fleetrun::engine
