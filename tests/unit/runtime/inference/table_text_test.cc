#include "runtime/inference/table_text.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

namespace fleetrun::inference {
namespace {

TEST_CASE("what a save is read by comes back") {
  ps::TableConfig sparse;
  sparse.id = 3;
  sparse.name = "rows \"quoted\"";
  sparse.kind = ps::TableConfig::Kind::sparse;
  sparse.width = 10;
  sparse.rule.kind = ps::UpdateRule::Kind::shared_adam;
  sparse.initializer = {ps::Initializer::Kind::truncated_normal, 0.1, 0.30000000000000004,
                        0xffffffffffffffff};
  sparse.accessor.kind = ps::Accessor::Kind::ctr;
  sparse.accessor.embedx_threshold = 0.1F;
  sparse.accessor.zero_init = true;
  sparse.accessor.embed_rule =
      ps::UpdateRule{.kind = ps::UpdateRule::Kind::std_adagrad, .initial_accumulator = 1.0F};
  sparse.admission.kind = ps::Admission::Kind::probability;
  ps::TableConfig dense;
  dense.name = "fc";
  dense.width = 1ULL << 40;
  dense.min_block = 4096;
  CHECK(parse_tables(table_text({sparse, dense})) == std::vector{sparse, dense});
  CHECK(parse_tables("[]").empty());
}

TEST_CASE("learning rates are left out") {
  ps::TableConfig table;
  table.rule.learning_rate = 0.5F;
  CHECK(parse_tables(table_text({table}))[0].rule == ps::UpdateRule{});
}

TEST_CASE("a damaged list is refused") {
  const std::string whole = table_text({ps::TableConfig{}});
  for (const std::string& text : {std::string("{"), std::string("[1]"), std::string(R"([{"id": 1}])"),
                                  std::string(whole).replace(whole.find("\"dense\""), 7, "\"denze\"")}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_tables(text), Error);
  }
}

TEST_CASE("a model of each rule can be served") {
  using enum ps::UpdateRule::Kind;
  for (const ps::UpdateRuleRow& row : ps::kUpdateRules) {
    if (row.kind == adam_d2sum || row.kind == summary) continue;  // of dense tables
    CAPTURE(row.name);
    ps::TableConfig table;
    table.name = "rows";
    table.kind = ps::TableConfig::Kind::sparse;
    table.width = 3;
    table.rule.kind = row.kind;
    table.rule.initial_accumulator = 3.0F;
    table.accessor.kind = ps::Accessor::Kind::ctr;
    table.accessor.embed_rule = table.rule;
    ps::check_tables({table});
    CHECK_NOTHROW(ps::check_tables(parse_tables(table_text({table}))));
  }
}

}  // namespace
}  // namespace fleetrun::inference
