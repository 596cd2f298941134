#include "ps/table/table_set.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "ps/table/push_values.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;
using fleetrun::tests::sparse_table;
using fleetrun::tests::text_of;

TEST_CASE("the check for numbers finds each kind that is none, at any position") {
  for (std::size_t size = 1; size < 40; ++size) {
    std::vector<float> values(size, std::numeric_limits<float>::max());
    values[0] = -0.0f;
    CHECK(are_finite(values));
    for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
      for (std::size_t i = 0; i < size; ++i) {
        std::vector<float> other = values;
        other[i] = bad;
        REQUIRE(!are_finite(other));
      }
    }
  }
  CHECK(are_finite({}));
}

TEST_CASE("a request is checked as a whole against the tables") {
  TableSet tables({sparse_table(0, "emb", 2), dense_table(1, "fc", 5)}, {1, 2});
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> two{1.0f, 2.0f};
  const auto refusal = [&](const wire::Sections& sections, std::vector<float> sparse,
                           std::vector<float> dense) {
    wire::PushRequest push;
    push.sections = sections;
    if (!sections.sparse.empty()) push.keys.emplace_back(keys), push.gradients.emplace_back(sparse);
    if (!sections.dense.empty()) push.dense.emplace_back(dense);
    return text_of([&] { tables.check(push); });
  };
  CHECK(refusal({{{7, 2, 1}}, {}}, two, {}) == "there is no table 7");
  CHECK(refusal({{{1, 2, 1}}, {}}, two, {}) == "table 1 is dense, not sparse");
  CHECK(refusal({{{0, 3, 1}}, {}}, two, {}) == "table 'emb' has rows of width 2, the request says 3");
  CHECK(refusal({{}, {{0, 0, 2}}}, {}, two) == "table 0 is sparse, not dense");
  CHECK(refusal({{}, {{1, 0, 2}}}, {}, two) == "table 'fc' has no values yet");
  CHECK(text_of([&] {
          tables.set_dense({1, 0, 5}, std::vector<float>(5));
        }) == "table 'fc' has 2 values on server 1, set_dense brings 5");
  tables.set_dense({1, 0, 2}, two);
  CHECK(refusal({{}, {{1, 0, 3}}}, {}, two) == "table 'fc' has 2 values on server 1, the request says 3");
  CHECK(refusal({{{0, 2, 1}}, {{1, 0, 2}}}, two, {1.0f, std::nanf("")}) ==
        "table 'fc': a gradient is NaN; nothing of this push was applied");
  CHECK(refusal({{{0, 2, 1}}, {}}, {INFINITY, 1.0f}, {}) ==
        "table 'emb': a gradient is infinite; nothing of this push was applied");
  CHECK(refusal({{{0, 2, 1}}, {}}, {1.0f, -2e30f}, {}) ==
        "table 'emb': a gradient is -2e+30, and more than 1e+30; nothing of this push was applied");
  CHECK(refusal({{{0, 2, 1}}, {{1, 0, 2}}}, two, two) == "no error");
}

TEST_CASE("what a ctr table pulls is wider than what is pushed, and its counts must be numbers") {
  TableConfig config = sparse_table(0, "emb", 2);
  config.accessor.kind = Accessor::Kind::ctr;
  TableSet tables({config}, {});
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> two{1.0f, 2.0f};
  const std::vector<float> bad{std::nanf("")};
  const std::vector<float> one{1.0f};
  wire::PullRequest pull;
  pull.sections.sparse = {{0, 2, 1}};
  pull.keys.emplace_back(keys);
  CHECK(text_of([&] { tables.pull(pull); }) == "table 'emb' has rows of width 4, the request says 2");
  pull.sections.sparse[0] = {0, 4, 1, wire::kNoNewRows, 0};
  CHECK(tables.pull(pull).size() == 16);
  CHECK(tables.sparse(0).rows() == 0);
  wire::PushRequest push;
  push.sections.sparse = {{0, 2, 1, wire::kStatistics, 3}};
  push.keys.emplace_back(keys);
  push.gradients.emplace_back(two);
  push.shows.emplace_back(one);
  push.clicks.emplace_back(bad);
  CHECK(text_of([&] { tables.check(push); }) ==
        "table 'emb': a click is NaN; nothing of this push was applied");
  const std::vector<float> negative{-1.0f};
  push.shows[0] = negative;
  push.clicks[0] = one;
  CHECK(text_of([&] { tables.check(push); }) ==
        "table 'emb': a show is -1; nothing of this push was applied");
  push.shows[0] = one;
  push.clicks[0] = one;
  CHECK(text_of([&] { tables.check(push); }) == "no error");
  tables.apply(push);
  CHECK(tables.sparse(0).rows() == 1);
}

TEST_CASE("a gradient whose square a float cannot hold is refused by rules that keep squares") {
  using Kind = UpdateRule::Kind;
  for (const Kind kind : {Kind::adagrad, Kind::adam, Kind::ftrl, Kind::shared_adagrad, Kind::std_adagrad,
                          Kind::pow_adam, Kind::shared_adam, Kind::adam_d2sum, Kind::sgd, Kind::momentum}) {
    const TableConfig config = sparse_table(0, "emb", 2, kind);
    const bool refuses = kind != Kind::sgd && kind != Kind::momentum;
    const std::vector<float> large{1.0f, 3e19f}, most{-1e15f, 1e15f};
    CAPTURE(static_cast<int>(kind));
    CHECK(text_of([&] { check_gradients(config, most, "applied"); }) == "no error");
    CHECK(text_of([&] { check_gradients(config, large, "applied"); }) ==
          (refuses ? "table 'emb': a gradient is 3e+19, and more than 1e+15; nothing of this push was applied"
                   : "no error"));
  }
}

TEST_CASE("a pull whose answer would be too long is refused") {
  const TableSet tables({sparse_table(0, "emb", 1 << 24)}, {});
  wire::PullRequest pull;
  const std::vector<std::uint64_t> keys(17);
  pull.sections.sparse = {{0, 1 << 24, keys.size()}};
  pull.keys.emplace_back(keys);
  CHECK(text_of([&] { tables.pull(pull); }) ==
        "a pull asks for 285212672 values; at most 268435456 fit into one answer");
}
