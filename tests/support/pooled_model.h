// The smallest model with everything that distributed training has: lookups over sequences and a dense
// weight.
#pragma once

#include <string>
#include <vector>

#include "tests/support/engine_program.h"

namespace fleetrun::tests {

inline void parameter(engine::Program& main, engine::Program& startup, const std::string& name,
                      const engine::Shape& shape, double value) {
  engine::Variable variable;
  variable.name = name;
  variable.shape = shape;
  variable.persistable = variable.trainable = true;
  variable.stop_gradient = false;
  main.add_variable(variable);
  startup.add_variable(variable);
  startup.append({"fill_constant", {}, {name}, {{"shape", shape}, {"value", value}}});
}

enum class Lookups { embedding, rows, tables };

/// Sum-pooled ids times w, square error: the model whose losses Paddle 2.6.2 prints as 6.5 and 0.1352 with
/// SGD(0.1).
struct PooledModel {
  engine::Program main, startup;

  explicit PooledModel(Lookups lookups) {
    parameter(main, startup, "emb", {100, 4}, 0.5);
    parameter(main, startup, "w", {4, 1}, 1.0);
    add_data(main, "ids", engine::DataType::int64, {-1, 1}, 1);
    add_data(main, "label", engine::DataType::float32, {-1, 1});
    if (lookups == Lookups::tables) {
      add(main, "sparse_embedding", {"ids"}, "rows",
          {{"parameter", std::string("emb")}, {"width", std::int64_t{4}}});
    } else {
      add(main, "embedding", {"emb", "ids"}, "rows", {{"is_sparse", lookups == Lookups::rows}});
    }
    add(main, "sequence_pool", {"rows"}, "pooled", {{"pool_type", std::string("sum")}});
    add(main, "reshape", {"pooled"}, "flat", {{"shape", std::vector<std::int64_t>{-1, 4}}});
    add(main, "matmul", {"flat", "w"}, "out");
    add(main, "square_error_cost", {"out", "label"}, "error");
    add(main, "mean", {"error"}, "loss");
  }
};

}  // namespace fleetrun::tests
