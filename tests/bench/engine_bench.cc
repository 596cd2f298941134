// The engine alone on the CTR-DNN shape: 26 slots x dim 10 in one shared table, 13 dense values, fc 400 x 400
// x 400, softmax of 2, SGD, batch 1000, one thread, random ids that are fed from memory. Prints examples/s of
// windows of 20 steps (median, least, most), for an embedding in this process and for rows from a RowSource
// that costs nothing; then what each type of operator takes of a step.
//
//   engine_bench [steps]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/engine/executor.h"
#include "runtime/engine/optimizer.h"
#include "runtime/engine/random.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

constexpr std::int64_t kBatch = 1000, kSlots = 26, kWidth = 10, kDense = 13, kRows = 1'000'001;

struct Model {
  Program main, startup;

  explicit Model(bool rows) {
    startup.random_seed = 1;
    add_data(main, "dense", DataType::float32, {-1, kDense});
    add_data(main, "label", DataType::int64, {-1, 1});
    if (!rows) parameter("emb", {kRows, kWidth}, 0.01);
    std::vector<std::string> parts;
    for (std::int64_t s = 0; s < kSlots; ++s) {
      const std::string slot = std::string("C").append(std::to_string(s));
      add_data(main, slot, DataType::int64, {-1, 1});
      if (rows) {
        add(main, "sparse_embedding", {slot}, slot + ".rows",
            {{"parameter", std::string("emb")}, {"width", kWidth}});
      } else {
        add(main, "embedding", {"emb", slot}, slot + ".rows", {{"is_sparse", true}});
      }
      parts.push_back(add(main, "reshape", {slot + ".rows"}, slot + ".flat",
                          {{"shape", std::vector<std::int64_t>{-1, kWidth}}}));
    }
    parts.emplace_back("dense");
    std::string x = add(main, "concat", parts, "x", {{"axis", std::int64_t{1}}});
    std::int64_t width = kSlots * kWidth + kDense;
    for (const char* layer : {"fc0", "fc1", "fc2"}) {
      x = add(main, "relu", {linear(layer, x, width, 400)}, std::string(layer) + ".relu");
      width = 400;
    }
    const std::string out = linear("out", x, 400, 2);
    add(main, "mean", {add(main, "cross_entropy", {out, "label"}, "cost")}, "loss");
    minimize(main, startup, "loss", {.learning_rate = 0.01});
  }

  void parameter(const std::string& name, const Shape& shape, double deviation) {
    Variable variable;
    variable.name = name;
    variable.shape = shape;
    variable.persistable = variable.trainable = true;
    variable.stop_gradient = false;
    main.add_variable(variable);
    startup.add_variable(variable);
    startup.append(
        {"uniform_random", {}, {name}, {{"shape", shape}, {"min", -deviation}, {"max", deviation}}});
  }

  std::string linear(const std::string& layer, const std::string& x, std::int64_t in, std::int64_t out) {
    parameter(layer + ".w", {in, out}, 0.05);
    parameter(layer + ".b", {out}, 0.0);
    return add(main, "linear", {x, layer + ".w", layer + ".b"}, layer);
  }
};

struct ConstantRows final : RowSource {
  void pull_rows(const std::string&, std::span<const std::uint64_t>, std::span<float> rows) override {
    std::fill(rows.begin(), rows.end(), 0.01f);
  }
};

std::vector<std::map<std::string, Tensor>> make_batches(std::size_t batches) {
  std::vector<std::map<std::string, Tensor>> all(batches);
  std::uint64_t k = 0;
  for (auto& batch : all) {
    Tensor dense(DataType::float32, {kBatch, kDense}), label(DataType::int64, {kBatch, 1});
    for (float& value : dense.values<float>()) value = static_cast<float>(uniform(1, ++k));
    for (std::int64_t& value : label.values<std::int64_t>()) value = uniform(2, ++k) < 0.3 ? 1 : 0;
    for (std::int64_t s = 0; s < kSlots; ++s) {
      Tensor ids(DataType::int64, {kBatch, 1});
      for (std::int64_t& id : ids.values<std::int64_t>()) {
        id = static_cast<std::int64_t>(uniform(3, ++k) * static_cast<double>(kRows));
      }
      batch.emplace(std::string("C").append(std::to_string(s)), std::move(ids));
    }
    batch.emplace("dense", std::move(dense));
    batch.emplace("label", std::move(label));
  }
  return all;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(const char* name, bool rows, int steps) {
  Model model(rows);
  Scope scope;
  Executor(model.startup, scope).run({});
  ConstantRows source;
  Executor executor(model.main, scope, rows ? &source : nullptr);
  const auto batches = make_batches(40);
  std::vector<double> rates;
  std::size_t at = 0;
  const auto step = [&] {
    std::map<std::string, const Tensor*> feed;
    for (const auto& [variable, tensor] : batches[at++ % batches.size()]) feed[variable] = &tensor;
    executor.run(feed);
  };
  for (int i = 0; i < 10; ++i) step();
  for (int done = 0; done < steps; done += 20) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) step();
    rates.push_back(20.0 * kBatch / seconds_since(start));
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%s: median %.0f examples/s, min %.0f, max %.0f, loss %.4f\n", name, rates[rates.size() / 2],
              rates.front(), rates.back(), static_cast<double>(floats_of(executor.tensor("loss"))[0]));
  std::map<std::string, double> by_type;
  double total = 0;
  constexpr int kProfiled = 20;
  for (int i = 0; i < kProfiled; ++i) {
    std::map<std::string, const Tensor*> feed;
    for (const auto& [variable, tensor] : batches[at++ % batches.size()]) feed[variable] = &tensor;
    executor.run(feed, [&](const Operator& op, double seconds) {
      by_type[op.type] += seconds;
      total += seconds;
    });
  }
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [type, seconds] : by_type) sorted.emplace_back(seconds, type);
  std::sort(sorted.rbegin(), sorted.rend());
  for (const auto& [seconds, type] : sorted) {
    std::printf("  %-20s %8.1f us/step %5.1f %%\n", type.c_str(), seconds / kProfiled * 1e6,
                100.0 * seconds / total);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::max(20, std::atoi(argv[1])) : 200;
  measure("embedding in this process", false, steps);
  measure("rows from outside", true, steps);
  return 0;
}
