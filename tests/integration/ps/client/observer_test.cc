// Looking on at parameter servers over gRPC on the loopback interface.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "ps/rpc/connect.h"
#include "ps/rpc/rpc_server.h"
#include "runtime/base/error.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun;
using namespace fleetrun::ps;
using fleetrun::tests::error_of;
using fleetrun::tests::text_of;
using Json = nlohmann::json;

namespace {

const std::vector<TableConfig> kTables{tests::sparse_table(4, "emb", 2), tests::dense_table(7, "fc", 3)};

struct Job {
  Access access{Secret::random(), "/job/secret"};
  std::vector<std::unique_ptr<RpcServer>> servers;
  std::vector<std::string> endpoints;

  explicit Job(std::uint32_t count, std::uint32_t trainers = 1) {
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      servers.push_back(
          std::make_unique<RpcServer>(ServerOptions{rank, count, trainers, Mode::async, kTables},
                                      "127.0.0.1:0", RpcServerOptions{.access = access}));
      endpoints.push_back(servers.back()->endpoint());
    }
  }

  std::unique_ptr<Client> trainer(std::uint32_t rank = 0, std::uint32_t trainers = 1) const {
    return connect(endpoints, {rank, trainers, Mode::async, kTables}, {.access = access});
  }
  Observer observer() const { return observe(endpoints, {.access = access}); }
};

}  // namespace

TEST_CASE("an observer sees the tables and what trainers have done, on every server") {
  const Job job(2);
  const auto trainer = job.trainer();
  std::vector<std::uint64_t> keys(100);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::vector<float> rows(200);
  trainer->pull({.sparse = {{4, keys, rows}}, .dense = {}});
  trainer->push({.thread = 0, .sparse = {{4, keys, rows}}, .dense = {}});
  const Observer observer = job.observer();
  REQUIRE(observer.tables.size() == 2);
  CHECK(observer.tables[0].name == "emb");
  CHECK(observer.tables[0].kind == TableConfig::Kind::sparse);
  CHECK(observer.tables[1].id == 7);
  CHECK(observer.tables[1].width == 3);
  const std::vector<std::string> texts = observer.client->stat();
  REQUIRE(texts.size() == 2);
  std::uint64_t seen = 0, pulled = 0;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const Json stat = Json::parse(texts[rank]);
    CHECK(stat.at("server") == rank);
    seen += stat.at("tables").at(0).at("rows").get<std::uint64_t>();
    pulled += stat.at("tables").at(0).at("pulled").get<std::uint64_t>();
    CHECK(stat.at("calls").at("push").at("calls") == 1);
    CHECK(stat.at("calls").at("attend").at("in_flight") == 1);
  }
  CHECK(seen == 100);
  CHECK(pulled == 100);
  CHECK(observer.client->rows(4) == 100);
  CHECK(trainer->stat().size() == 2);
}

TEST_CASE("an observer may not do what trainers do, and the trainers do not notice it") {
  const Job job(1);
  const auto trainer = job.trainer();
  const Observer observer = job.observer();
  const std::uint64_t key = 1;
  float row[2] = {};
  const auto refused = [&](const std::function<void()>& act, const std::string& what) {
    const Error error = error_of(act);
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()).starts_with("who looks on may not " + what));
  };
  refused([&] { observer.client->pull({.sparse = {{4, std::span(&key, 1), row}}, .dense = {}}); }, "pull");
  refused(
      [&] {
        observer.client->push({.thread = 0, .sparse = {{4, std::span(&key, 1), row}}, .dense = {}});
      },
      "push");
  refused([&] { observer.client->barrier(); }, "barrier");
  refused([&] { observer.client->goodbye(); }, "goodbye");
  refused([&] { observer.client->load("/nowhere"); }, "load_prepare");
  CHECK(observer.client->rows(4) == 0);
  trainer->barrier();
}

TEST_CASE("an observer needs the job's secret, and the right list of servers") {
  const Job job(2);
  CHECK(error_of([&] {
          observe(job.endpoints, {.access = {Secret::random(), "another"}});
        }).kind() == ErrorKind::config);
  const std::vector<std::string> swapped{job.endpoints[1], job.endpoints[0]};
  CHECK(text_of([&] { observe(swapped, {.access = job.access}); }).find("the server's rank") !=
        std::string::npos);
}

TEST_CASE("servers end with their last trainer though somebody looks on") {
  const Job job(1);
  const auto trainer = job.trainer();
  const Observer observer = job.observer();
  CHECK(observer.client->stat().size() == 1);
  trainer->goodbye();
  job.servers[0]->wait();
  CHECK(error_of([&] { observer.client->stat(); }).kind() == ErrorKind::network);
}

TEST_CASE("an observer that goes is not missed") {
  const Job job(1);
  const auto trainer = job.trainer();
  job.observer().client.reset();
  trainer->barrier();
  CHECK(Json::parse(trainer->stat()[0]).at("stale_requests") == 0);
}

TEST_CASE("an observer gets rows as they are, wherever they lie, and makes none") {
  const Job job(3);
  const auto trainer = job.trainer();
  const std::vector<std::uint64_t> keys{7, ~0ull, 7, 9};
  const std::vector<float> gradients{1, 2, 10, 20, 1, 2, 5, 6};
  trainer->push({.thread = 0, .sparse = {{4, keys, gradients}}, .dense = {}});
  const std::vector<float> values{1, 2, 3};
  trainer->set_dense(7, values);
  const Observer observer = job.observer();
  const std::vector<std::uint64_t> asked{9, 8, 7, ~0ull, 9};
  const StoredRows rows = observer.client->get(4, asked);
  CHECK(rows.width == 2);
  CHECK(rows.found == std::vector<bool>{true, false, true, true, true});
  CHECK(rows.statistics.empty());
  CHECK(rows.values == std::vector<float>{5, 6, 0, 0, 2, 4, 10, 20, 5, 6});
  CHECK(observer.client->rows(4) == 3);
  CHECK(observer.client->get(7, {}).values == values);
  CHECK(trainer->get(4, asked).found[1] == false);
  CHECK(text_of([&] { observer.client->get(7, asked); }) == "table 'fc' is dense and has no keys");
  CHECK(text_of([&] { observer.client->get(99, asked); }) == "there is no table 99");
  CHECK(observer.client->shrink(4) == 0);
}

TEST_CASE("rows of a table with statistics come with them, and shrink decays them until they expire") {
  TableConfig config = tests::sparse_table(1, "ctr", 2);
  config.accessor.kind = Accessor::Kind::sparse;
  config.accessor.show_click_decay_rate = 0.5f;
  config.accessor.delete_threshold = 0.09f;
  config.accessor.nonclk_coeff = 0.1f;
  const std::vector<TableConfig> tables{config};
  RpcServer server({.tables = tables}, "127.0.0.1:0");
  const auto trainer = connect({server.endpoint()}, {.tables = tables});
  const std::uint64_t keys[] = {1, 2};
  const std::vector<float> gradients(4, 1.0f);
  trainer->push({.thread = 0, .sparse = {{1, keys, gradients}}, .dense = {}});
  trainer->push(
      {.thread = 0, .sparse = {{1, std::span(keys, 1), std::span(gradients).first(2)}}, .dense = {}});
  const StoredRows rows = trainer->get(1, keys);
  REQUIRE(rows.statistics.size() == 2);
  CHECK(rows.statistics[0].show == 2);
  CHECK(rows.statistics[1].show == 1);
  CHECK(rows.statistics[1].click == 0);
  const Observer observer = observe({server.endpoint()});
  CHECK(observer.client->shrink(1) == 1);
  CHECK(observer.client->get(1, keys).found == std::vector<bool>{true, false});
  CHECK(observer.client->get(1, keys).statistics[0].show == 1);
  CHECK(Json::parse(observer.client->stat()[0]).at("tables").at(0).at("erased") == 1);
}
