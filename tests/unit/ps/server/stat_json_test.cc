#include "ps/server/stat_json.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::dense_table;
using fleetrun::tests::sparse_table;
using Json = nlohmann::json;

TEST_CASE("any text becomes a JSON string") {
  CHECK(json_string("emb") == "\"emb\"");
  CHECK(json_string("a\"b\\c\n\xff") == "\"a\\\"b\\\\c\\u000a?\"");
  CHECK(Json::parse(json_string("ä \x01 \"")).get<std::string>() == "ä \x01 \"");
}

TEST_CASE("the figures of a server are JSON that says what came and what went") {
  const std::vector<TableConfig> tables{sparse_table(3, "e\"mb", 2), dense_table(5, "fc", 3)};
  const ServerOptions options{.rank = 1, .servers = 2, .trainers = 4, .mode = Mode::geo, .tables = tables};
  const auto metrics = std::make_shared<Metrics>(tables);
  const TableSet set(tables, {1, 2});
  const std::uint64_t keys[] = {1, 2, 3};
  std::vector<float> rows(6);
  set.sparse(3).pull(keys, rows.data());
  metrics->pulled({.sparse = {{3, 2, 3}}, .dense = {{5, 0, 2}}});
  metrics->pushed({.sparse = {{3, 2, 2}, {77, 2, 9}}, .dense = {}});
  int answers = 0;
  const auto answer = [&](Outcome) { ++answers; };
  Metrics::count(metrics, wire::Method::pull, 100, answer)(Message(24));
  Metrics::count(metrics, wire::Method::pull, 50, answer)(Error(ErrorKind::data, "no"));
  const Respond pending = Metrics::count(metrics, wire::Method::barrier, 0, answer);
  const std::vector<TrainerWait> waits{{0, "barrier", std::chrono::milliseconds(2500)}, {1, "push", {}}};
  const Json stat = Json::parse(stat_json({options, *metrics, set, 6, {}, waits}));
  CHECK(stat.at("waits") == Json::parse(R"([{"trainer":0,"call":"barrier","seconds":2.5}])"));
  CHECK(answers == 2);
  CHECK(stat.at("schema") == 1);
  CHECK(stat.at("server") == 1);
  CHECK(stat.at("servers") == 2);
  CHECK(stat.at("mode") == "geo");
  CHECK(stat.at("host").get<std::string>() != "");
  CHECK(stat.at("pid") == ::getpid());
  CHECK(stat.at("trainers") == 4);
  CHECK(stat.at("stale_requests") == 6);
  const Json& sparse = stat.at("tables").at(0);
  CHECK(sparse.at("name") == "e\"mb");
  CHECK(sparse.at("rows") == 3);
  CHECK(sparse.at("created") == 3);
  CHECK(sparse.at("bytes") > 0);
  CHECK(sparse.at("pulled") == 3);
  CHECK(sparse.at("pushed") == 2);
  CHECK(stat.at("tables").at(1).at("kind") == "dense");
  CHECK(stat.at("tables").at(1).at("pulled") == 1);
  const Json& pull = stat.at("calls").at("pull");
  CHECK(pull.at("calls") == 2);
  CHECK(pull.at("errors") == 1);
  CHECK(pull.at("bytes_in") == 150);
  CHECK(pull.at("bytes_out") == 24);
  std::uint64_t counted = 0;
  for (const Json& bucket : pull.at("latency_ns")) counted += bucket.at(1).get<std::uint64_t>();
  CHECK(counted == 2);
  CHECK(stat.at("calls").at("barrier").at("in_flight") == 1);
  CHECK(stat.at("calls").at("barrier").at("calls") == 0);
  CHECK_FALSE(stat.at("calls").contains("push"));
}
