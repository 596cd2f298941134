// The CTR network that tests and benches of the engine train: slots of ids in one shared table, dense values,
// layers with relu, softmax of two.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/engine/optimizer.h"
#include "runtime/engine/random.h"
#include "tests/support/engine_program.h"

namespace fleetrun::tests {

struct CtrShape {
  std::int64_t slots = 26;
  std::int64_t width = 10;
  std::int64_t dense = 13;
  std::int64_t rows = 1'000'001;
  std::vector<std::int64_t> layers = {400, 400, 400};
  /// Ids of any number, summed up; else one in each slot.
  bool pooled = false;
  /// sparse_embedding, with rows from a RowSource; else embedding with is_sparse.
  bool outside = false;
  std::string activation = "relu";
};

inline std::string slot_name(std::int64_t slot) {
  return std::string("C").append(std::to_string(slot));
}

struct CtrModel {
  engine::Program main, startup;

  explicit CtrModel(const CtrShape& shape,
                    const engine::OptimizerConfig& optimizer = {.learning_rate = 0.01}) {
    using engine::DataType;
    startup.random_seed = main.random_seed = 1;
    add_data(main, "dense", DataType::float32, {-1, shape.dense});
    add_data(main, "label", DataType::int64, {-1, 1});
    if (!shape.outside) parameter("emb", {shape.rows, shape.width}, 0.01);
    std::vector<std::string> parts;
    for (std::int64_t s = 0; s < shape.slots; ++s) parts.push_back(slot(shape, s));
    parts.emplace_back("dense");
    std::string x = add(main, "concat", parts, "x", {{"axis", std::int64_t{1}}});
    std::int64_t width = shape.slots * shape.width + shape.dense;
    for (std::size_t i = 0; i < shape.layers.size(); ++i) {
      const std::string layer = std::string("fc").append(std::to_string(i));
      x = add(main, shape.activation, {linear(layer, x, width, shape.layers[i])}, layer + ".act");
      width = shape.layers[i];
    }
    const std::string out = linear("out", x, width, 2);
    add(main, "mean", {add(main, "cross_entropy", {out, "label"}, "cost")}, "loss");
    engine::minimize(main, startup, "loss", optimizer);
  }

 private:
  std::string slot(const CtrShape& shape, std::int64_t index) {
    const std::string name = slot_name(index);
    add_data(main, name, engine::DataType::int64, {-1, 1}, shape.pooled ? 1 : 0);
    std::string rows = name + ".rows";
    if (shape.outside) {
      add(main, "sparse_embedding", {name}, rows,
          {{"parameter", std::string("emb")}, {"width", shape.width}});
    } else {
      add(main, "embedding", {"emb", name}, rows, {{"is_sparse", true}});
    }
    if (shape.pooled)
      rows = add(main, "sequence_pool", {rows}, name + ".pooled", {{"pool_type", std::string("sum")}});
    return add(main, "reshape", {rows}, name + ".flat",
               {{"shape", std::vector<std::int64_t>{-1, shape.width}}});
  }

  void parameter(const std::string& name, const engine::Shape& shape, double deviation) {
    engine::Variable variable;
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

/// Batches of random ids, values and labels, the same for the same arguments.
/// Of pooled slots example r has r % 4 ids.
inline std::vector<std::map<std::string, engine::Tensor>> ctr_batches(const CtrShape& shape,
                                                                      std::size_t batches,
                                                                      std::int64_t batch_size) {
  using engine::DataType;
  using engine::Tensor;
  std::vector<std::map<std::string, Tensor>> all(batches);
  std::uint64_t k = 0;
  for (auto& batch : all) {
    Tensor dense(DataType::float32, {batch_size, shape.dense}), label(DataType::int64, {batch_size, 1});
    for (float& value : dense.values<float>()) value = static_cast<float>(engine::uniform(1, ++k));
    for (std::int64_t& value : label.values<std::int64_t>()) value = engine::uniform(2, ++k) < 0.3 ? 1 : 0;
    for (std::int64_t s = 0; s < shape.slots; ++s) {
      std::vector<std::size_t> offsets{0};
      for (std::int64_t r = 0; shape.pooled && r < batch_size; ++r)
        offsets.push_back(offsets.back() + static_cast<std::size_t>((r + s) % 4));
      const std::int64_t count = shape.pooled ? static_cast<std::int64_t>(offsets.back()) : batch_size;
      Tensor ids(DataType::int64, {count, 1});
      if (shape.pooled) ids.offsets = offsets;
      for (std::int64_t& id : ids.values<std::int64_t>())
        id = static_cast<std::int64_t>(engine::uniform(3, ++k) * static_cast<double>(shape.rows));
      batch.emplace(slot_name(s), std::move(ids));
    }
    batch.emplace("dense", std::move(dense));
    batch.emplace("label", std::move(label));
  }
  return all;
}

using CtrFeed = std::map<std::string, const engine::Tensor*>;

inline CtrFeed feed_of(const std::map<std::string, engine::Tensor>& batch) {
  CtrFeed feed;
  for (const auto& [name, tensor] : batch) feed[name] = &tensor;
  return feed;
}

}  // namespace fleetrun::tests
