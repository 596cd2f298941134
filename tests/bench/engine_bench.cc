// The engine alone on the CTR-DNN shape: 26 slots x dim 10 in one shared table, 13 dense values, fc 400 x 400
// x 400, softmax of 2, SGD, random ids that are fed from memory. Beside it, in turn, the same matrix products
// alone, and the program without passes. Each thread has its own executor
// and batches over shared parameters, as in train_from_dataset.
//
//   engine_bench [BATCH [THREADS [ROUNDS]]]    a line of JSON with examples/s for each round
//   engine_bench operators [BATCH]             what each type of operator takes of a step,
//                                              with and without passes

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/engine/executor.h"
#include "runtime/engine/operators/matrix_product.h"
#include "runtime/engine/passes/passes.h"
#include "tests/support/ctr_model.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Forward, gradient by the input and by the weight, of every layer, on buffers of one thread.
class Products {
 public:
  Products(const CtrShape& shape, std::int64_t batch) : batch_(static_cast<std::size_t>(batch)) {
    std::int64_t width = shape.slots * shape.width + shape.dense;
    for (const std::int64_t layer : shape.layers) {
      add_layer(width, layer);
      width = layer;
    }
    add_layer(width, 2);
  }

  void step() {
    for (Layer& layer : layers_) {
      multiply({.rows = batch_, .columns = layer.out, .inner = layer.in}, data(layer.x), data(layer.w),
               data(layer.y));
    }
    for (std::size_t i = layers_.size(); i-- > 0;) {
      Layer& layer = layers_[i];
      multiply({.transpose_a = true, .rows = layer.in, .columns = layer.out, .inner = batch_}, data(layer.x),
               data(layer.y), data(layer.dw));
      multiply({.transpose_b = true, .rows = batch_, .columns = layer.in, .inner = layer.out}, data(layer.y),
               data(layer.w), data(layer.dx));
    }
  }

 private:
  struct Layer {
    std::size_t in, out;
    Tensor x, w, y, dx, dw;
  };
  /// Tensors, because products are faster where lines of the cache begin.
  static Tensor filled(std::size_t rows, std::size_t columns, float value) {
    Tensor tensor(DataType::float32, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
    std::ranges::fill(tensor.values<float>(), value);
    return tensor;
  }
  void add_layer(std::int64_t in, std::int64_t out) {
    const auto i = static_cast<std::size_t>(in), o = static_cast<std::size_t>(out);
    layers_.push_back({i, o, filled(batch_, i, 0.5f), filled(i, o, 0.01f), filled(batch_, o, 0.0f),
                       filled(batch_, i, 0.0f), filled(i, o, 0.0f)});
  }
  static float* data(Tensor& tensor) { return tensor.values<float>().data(); }

  std::size_t batch_;
  std::vector<Layer> layers_;
};

using Step = std::function<void()>;

/// Examples/s of `steps` steps on each of the threads.
double rate_of(const std::vector<Step>& threads, std::size_t steps, std::int64_t batch) {
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> all;
    for (const Step& step : threads) {
      all.emplace_back([&step, steps] {
        for (std::size_t i = 0; i < steps; ++i) step();
      });
    }
  }
  return static_cast<double>(steps * threads.size()) * static_cast<double>(batch) / seconds_since(start);
}

/// A program over its own scope, with an executor and batches for each thread.
struct Trained {
  Scope scope;
  std::vector<std::map<std::string, Tensor>> batches;
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<Step> steps;

  Trained(const Program& startup, const Program& main, const CtrShape& shape, std::int64_t batch,
          std::size_t threads)
      : batches(
            ctr_batches(shape, static_cast<std::size_t>(std::max<std::int64_t>(40, 20000 / batch)), batch)) {
    Executor(startup, scope).run({});
    for (std::size_t t = 0; t < threads; ++t) {
      executors.push_back(std::make_unique<Executor>(main, scope));
      steps.emplace_back([this, executor = executors.back().get(), at = t * 17]() mutable {
        executor->run(feed_of(batches[at++ % batches.size()]));
      });
    }
  }
};

void measure(std::int64_t batch, std::size_t threads, int rounds) {
  const CtrShape shape;
  const CtrModel model(shape);
  Trained plain(model.startup, model.main, shape, batch, threads);
  Trained passed(model.startup, optimize(model.main, {"loss"}), shape, batch, threads);
  std::vector<std::unique_ptr<Products>> products;
  std::vector<Step> multiplied;
  for (std::size_t t = 0; t < threads; ++t) {
    products.push_back(std::make_unique<Products>(shape, batch));
    multiplied.emplace_back([work = products.back().get()] { work->step(); });
  }
  const auto steps =
      static_cast<std::size_t>(std::max<std::int64_t>(10, std::min<std::int64_t>(5000, 30000 / batch)));
  for (const auto* side : {&multiplied, &plain.steps, &passed.steps}) rate_of(*side, steps / 4 + 1, batch);
  for (int round = 0; round < rounds; ++round) {
    const double alone = rate_of(multiplied, steps, batch);
    const double without = rate_of(plain.steps, steps, batch);
    const double with = rate_of(passed.steps, steps, batch);
    std::printf("{\"products\": %.0f, \"without_passes\": %.0f, \"engine\": %.0f, \"loss\": %.5f}\n", alone,
                without, with, static_cast<double>(floats_of(passed.executors[0]->tensor("loss"))[0]));
    std::fflush(stdout);
  }
}

void show_operators(const char* name, const Program& startup, const Program& main, std::int64_t batch) {
  const CtrShape shape;
  Trained trained(startup, main, shape, batch, 1);
  for (int i = 0; i < 20; ++i) trained.steps[0]();
  std::map<std::string, double> by_type;
  double total = 0;
  constexpr std::size_t kProfiled = 40;
  for (std::size_t i = 0; i < kProfiled; ++i) {
    trained.executors[0]->run(feed_of(trained.batches[i % trained.batches.size()]),
                              [&](const Operator& op, double seconds) {
                                by_type[op.type] += seconds;
                                total += seconds;
                              });
  }
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [type, seconds] : by_type) sorted.emplace_back(seconds, type);
  std::sort(sorted.rbegin(), sorted.rend());
  std::printf("%s\n", name);
  for (const auto& [seconds, type] : sorted) {
    std::printf("  %-20s %8.1f us/step %5.1f %%\n", type.c_str(), seconds / kProfiled * 1e6,
                100.0 * seconds / total);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at, int fallback) {
    return argc > at ? std::max(1, std::atoi(argv[at])) : fallback;
  };
  if (argc > 1 && std::string_view(argv[1]) == "operators") {
    const CtrModel model{CtrShape()};
    show_operators("without passes", model.startup, model.main, number(2, 1000));
    show_operators("with passes", model.startup, optimize(model.main, {"loss"}), number(2, 1000));
    return 0;
  }
  measure(number(1, 1000), static_cast<std::size_t>(number(2, 1)), number(3, 5));
  return 0;
}
