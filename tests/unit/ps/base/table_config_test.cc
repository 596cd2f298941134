#include "ps/base/table_config.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;
using fleetrun::tests::sparse_table;
using fleetrun::tests::text_of;

TEST_CASE("a description shows all that makes a table") {
  TableConfig config = sparse_table(2, "emb", 10, UpdateRule::Kind::adam);
  config.initializer = {Initializer::Kind::truncated_normal, 0.0, 0.1, 7};
  CHECK(describe(config) ==
        "sparse table 2 'emb' of width 10, adam(learning_rate=0.5, beta1=0.9, beta2=0.999, epsilon=1e-08), "
        "truncated_normal(0, 0.1, seed=7)");
  CHECK(describe(dense_table(0, "fc", 5, UpdateRule::Kind::adagrad)) ==
        "dense table 0 'fc' of width 5, adagrad(learning_rate=0.5, epsilon=1e-08, initial_accumulator=0)");
}

TEST_CASE("tables that cannot work are refused by name") {
  const auto refusal = [](TableConfig config) { return text_of([&] { check_tables({config}); }); };
  CHECK(refusal(sparse_table(0, "t", 0)) == "table 't': its width is 0");
  CHECK(refusal(sparse_table(0, "t", 1 << 25)) == "table 't': rows of 33554432 floats; at most 16777216 fit");
  TableConfig config = sparse_table(0, "t", 1, UpdateRule::Kind::adam);
  config.rule.beta2 = 1.0f;
  CHECK(refusal(config) == "table 't': beta1=0.9, beta2=1");
  config = sparse_table(0, "t", 1);
  config.rule.learning_rate = std::nanf("");
  CHECK(refusal(config) == "table 't': its learning rate is not a finite number");
  config = sparse_table(0, "t", 1);
  config.rule.epsilon = -1.0f;
  CHECK(refusal(config) == "table 't': epsilon=-1");
  config = sparse_table(0, "t", 1);
  config.rule.initial_accumulator = -1.0f;
  CHECK(refusal(config) == "table 't': initial_accumulator=-1");
  config = sparse_table(0, "t", 1);
  config.initializer.b = INFINITY;
  CHECK(refusal(config) == "table 't': its initializer is not finite");
  config = dense_table(0, "t", 1, UpdateRule::Kind::shared_adam);
  CHECK(refusal(config) == "table 't': a dense table has no rows that shared_adam could share its state in");
  config = sparse_table(0, "t", 1, UpdateRule::Kind::adam_d2sum);
  CHECK(refusal(config) == "table 't': adam_d2sum is a rule of dense tables");
  config = sparse_table(0, "t", 1, UpdateRule::Kind::summary);
  CHECK(refusal(config) == "table 't': summary is a rule of dense tables");
  config = dense_table(0, "t", 1);
  config.admission.kind = Admission::Kind::count;
  CHECK(refusal(config) == "table 't': a dense table has no keys to keep statistics of, or to admit");
  config = sparse_table(0, "t", 1, UpdateRule::Kind::shared_adagrad);
  CHECK(refusal(config) == "table 't': shared_adagrad needs an initial_accumulator above 0");
  config = sparse_table(0, "t", 1, UpdateRule::Kind::ftrl);
  config.rule.learning_rate_power = 0.5f;
  CHECK(refusal(config) == "table 't': learning_rate_power=0.5");
  config = sparse_table(0, "t", 1);
  config.rule.l2_decay = INFINITY;
  CHECK(refusal(config) == "table 't': its decay is not a finite number");
  config = sparse_table(0, "t", 1);
  config.accessor.embed_rule = UpdateRule{};
  CHECK(refusal(config) == "table 't': its first column has a rule of its own, but it keeps no statistics");
  config.accessor.kind = Accessor::Kind::ctr;
  CHECK(refusal(config) == "no error");
  config.accessor.base_threshold = std::nanf("");
  CHECK(refusal(config) == "table 't': its accessor has a parameter that is not a finite number");
  CHECK(text_of([] {
          check_tables({sparse_table(1, "a", 1), dense_table(1, "b", 1)});
        }) == "two tables have the id 1");
  CHECK(text_of([] {
          check_tables({sparse_table(1, "a", 1), dense_table(2, "a", 1)});
        }) == "two tables have the name 'a'");
  check_tables({sparse_table(1, "a", 1), dense_table(2, "b", 1)});
}
