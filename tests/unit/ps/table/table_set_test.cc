#include "ps/table/table_set.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

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
        "table 'emb': a show or click is NaN or infinite; nothing of this push was applied");
  push.clicks[0] = one;
  CHECK(text_of([&] { tables.check(push); }) == "no error");
  tables.apply(push);
  CHECK(tables.sparse(0).rows() == 1);
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
