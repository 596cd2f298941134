#include "ps/geo/geo_client.h"

#include <doctest/doctest.h>

#include <latch>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "ps/memory/in_process.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::ps;
using tests::dense_table;
using tests::sparse_table;

namespace {

using Keys = std::vector<std::uint64_t>;
using Values = std::vector<float>;

/// Trainers in geo mode over the same servers, and beside each a client that looks at the servers themselves.
struct Job {
  std::vector<std::unique_ptr<Client>> geo;

  Job(std::uint32_t servers, std::uint32_t trainers, const std::vector<TableConfig>& tables,
      std::uint32_t steps) {
    for (auto& client : make_in_process(servers, trainers, Mode::geo, geo_tables(tables))) {
      geo.push_back(make_geo_client(std::move(client), {tables, trainers, steps}));
    }
  }
};

Values rows_of(Client& client, std::uint32_t table, const Keys& keys) {
  Values rows(keys.size());
  client.pull({.sparse = {{.table = table, .keys = keys, .rows = rows}}, .dense = {}});
  return rows;
}

void push_rows(Client& client, const Keys& keys, const Values& gradients) {
  client.push({.thread = 0, .sparse = {{.table = 0, .keys = keys, .gradients = gradients}}, .dense = {}});
}

/// The end of a pass: everything is exchanged.
void exchange(Client& client) {
  client.begin_epoch(1);
  client.leave_epoch(0);
}

}  // namespace

TEST_CASE("one trainer trains as without servers, and the servers end with what it has") {
  const std::vector<TableConfig> tables = {sparse_table(0, "emb", 1, UpdateRule::Kind::adagrad),
                                           dense_table(1, "fc", 3, UpdateRule::Kind::adam)};
  Job job(2, 1, tables, 2);
  auto alone = std::move(make_in_process(1, 1, Mode::async, tables).front());
  const Keys keys{1, 2, 2, 77};
  const Values gradients{0.5f, -1.0f, 0.25f, 2.0f}, slope{1.0f, -2.0f, 0.5f}, first{0.5f, 0.5f, 0.5f};
  std::vector<Values> rows, dense;
  for (Client* client : {job.geo[0].get(), alone.get()}) {
    client->set_dense(1, first);
    Values values(3);
    for (int step = 0; step < 5; ++step) {
      rows.push_back(rows_of(*client, 0, keys));
      client->pull({.sparse = {}, .dense = {{1, values}}});
      client->push({.thread = 0,
                    .sparse = {{.table = 0, .keys = keys, .gradients = gradients}},
                    .dense = {{.table = 1, .gradients = slope}}});
    }
    client->pull({.sparse = {}, .dense = {{1, values}}});
    dense.push_back(values);
    rows.push_back(rows_of(*client, 0, keys));
  }
  for (std::size_t step = 0; step < 6; ++step) CHECK(rows[step] == rows[6 + step]);
  CHECK(dense[0] == dense[1]);
  CHECK(rows[5] != rows[0]);

  // Loaded into a job of another kind of client: the values are those of the copy.
  const tests::TempDir directory;
  job.geo[0]->save(directory.path());
  auto looking = std::move(make_in_process(1, 1, Mode::async, geo_tables(tables)).front());
  looking->load(directory.path());
  Values saved(3);
  looking->pull({.sparse = {}, .dense = {{1, saved}}});
  for (int i = 0; i < 3; ++i) CHECK(saved[i] == doctest::Approx(dense[0][i]));
  const Values saved_rows = rows_of(*looking, 0, keys);
  for (std::size_t i = 0; i < keys.size(); ++i) CHECK(saved_rows[i] == doctest::Approx(rows[5][i]));
}

TEST_CASE("rows that one trainer assigns are its own at once, and the others' after an exchange") {
  Job job(2, 2, {sparse_table(0, "emb", 1, UpdateRule::Kind::adagrad)}, 100);
  Client& a = *job.geo[0];
  Client& b = *job.geo[1];
  const Keys keys{1, 2};
  push_rows(a, {1}, {8});
  CHECK(rows_of(b, 0, keys) == Values{0, 0});
  const Values values{30, 40};
  a.assign(0, keys, values);
  CHECK(rows_of(a, 0, keys) == values);
  exchange(b);
  CHECK(rows_of(b, 0, keys) == values);
  exchange(a);
  CHECK(rows_of(a, 0, keys) == values);
  // The first gradient of a row: 0.5 over sqrt(1).
  push_rows(a, {1}, {1});
  CHECK(rows_of(a, 0, {1})[0] == doctest::Approx(29.5));
}

TEST_CASE("two trainers exchange shares of their differences, as derived by hand") {
  Job job(2, 2, {sparse_table(0, "emb", 1)}, 100);
  Client& a = *job.geo[0];
  Client& b = *job.geo[1];
  const Keys keys{1, 2};
  CHECK(rows_of(a, 0, keys) == Values{0, 0});
  CHECK(rows_of(b, 0, keys) == Values{0, 0});
  push_rows(a, {1}, {8});
  push_rows(b, {1, 2}, {4, 16});
  exchange(a);  // sends 4
  CHECK(rows_of(a, 0, keys) == Values{8, 0});
  CHECK(rows_of(b, 0, keys) == Values{4, 16});
  exchange(b);  // sends 2 and 8, hears of 6
  CHECK(rows_of(b, 0, keys) == Values{8, 16});
  exchange(a);  // hears of 6 and 8
  CHECK(rows_of(a, 0, keys) == Values{10, 8});
  push_rows(a, {1}, {0});
  exchange(a);  // the other half of 8: sends 2
  exchange(b);
  CHECK(rows_of(a, 0, keys) == Values{10, 8});
  CHECK(rows_of(b, 0, keys) == Values{10, 16});
}

TEST_CASE("what a trainer pushes without having pulled it is exchanged too") {
  TableConfig rows = sparse_table(0, "emb", 1);
  rows.initializer = {.kind = Initializer::Kind::constant, .a = 10.0f};
  Job job(2, 2, {rows, dense_table(1, "fc", 2)}, 10);
  Client &a = *job.geo[0], &b = *job.geo[1];
  a.set_dense(1, Values{1, 2});
  push_rows(b, {1, 2, 1}, {1, 1, 1});
  b.push({.thread = 0, .sparse = {}, .dense = {{.table = 1, .gradients = Values{2, 4}}}});
  exchange(b);
  exchange(a);
  CHECK(rows_of(a, 0, {1, 2, 3}) == Values{11, 10.5f, 10});
  Values dense(2);
  a.pull({.sparse = {}, .dense = {{1, dense}}});
  CHECK(dense == Values{2, 4});
}

TEST_CASE("every so many pushes a trainer exchanges by itself") {
  Job job(1, 2, {sparse_table(0, "emb", 1)}, 3);
  rows_of(*job.geo[1], 0, {1});
  rows_of(*job.geo[0], 0, {1});
  for (int step = 0; step < 6; ++step) push_rows(*job.geo[0], {1}, {1});
  // The sixth push has waited for the exchange that the third has begun,
  // which sent half of three pushes at least.
  exchange(*job.geo[1]);
  const float heard = rows_of(*job.geo[1], 0, {1})[0];
  CHECK(heard >= 1.5f);
  CHECK(heard < 6.0f);
}

TEST_CASE("threads of several trainers lose nothing: what servers lack of each is in its copy") {
  constexpr int kThreads = 4, kSteps = 60;
  Job job(2, 2, {sparse_table(0, "emb", 1), dense_table(1, "fc", 5)}, 40);
  job.geo[0]->set_dense(1, Values(5, 0.0f));
  Keys keys(50);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i * 1000003;
  {
    std::vector<std::jthread> threads;
    for (auto& trainer : job.geo) {
      trainer->begin_epoch(kThreads);
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&trainer, &keys, t] {
          Values rows(keys.size()), dense(5);
          const Values ones(keys.size(), 1.0f), slope(5, 1.0f);
          for (int step = 0; step < kSteps; ++step) {
            trainer->pull({.sparse = {{.table = 0, .keys = keys, .rows = rows}}, .dense = {{1, dense}}});
            trainer->push({.thread = static_cast<std::uint32_t>(t),
                           .sparse = {{.table = 0, .keys = keys, .gradients = ones}},
                           .dense = {{.table = 1, .gradients = slope}}});
          }
          trainer->leave_epoch(static_cast<std::uint32_t>(t));
        });
      }
    }
  }
  // What a copy has and the servers have not is its own:
  // once both know all of the servers', mine + yours - theirs is everything.
  exchange(*job.geo[0]);
  exchange(*job.geo[1]);
  exchange(*job.geo[0]);
  const Values mine = rows_of(*job.geo[0], 0, keys), yours = rows_of(*job.geo[1], 0, keys);
  const tests::TempDir directory;
  job.geo[0]->save(directory.path());
  auto looking = std::move(
      make_in_process(1, 1, Mode::async, geo_tables({sparse_table(0, "emb", 1), dense_table(1, "fc", 5)}))
          .front());
  looking->load(directory.path());
  const Values theirs = rows_of(*looking, 0, keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    CHECK(mine[i] + yours[i] - theirs[i] == doctest::Approx(2.0 * kThreads * kSteps).epsilon(1e-5));
  }
}

TEST_CASE("after a load a trainer goes on with what was loaded") {
  Job job(2, 2, {sparse_table(0, "emb", 1), dense_table(1, "fc", 2)}, 100);
  Client& a = *job.geo[0];
  Client& b = *job.geo[1];
  const tests::TempDir directory;
  a.set_dense(1, Values{1, 2});
  rows_of(a, 0, {1});
  push_rows(a, {1}, {8});
  exchange(a);
  a.save(directory.path());
  push_rows(a, {1}, {100});
  exchange(a);
  rows_of(b, 0, {1});
  a.load(directory.path());
  CHECK(rows_of(a, 0, {1}) == Values{4});
  // The other trainer has not loaded; its next exchange takes the servers' values over.
  exchange(b);
  CHECK(rows_of(b, 0, {1}) == Values{4});
  Values dense(2);
  a.pull({.sparse = {}, .dense = {{1, dense}}});
  CHECK(dense == Values{1, 2});
}

TEST_CASE("what is wrong with a push is said before anything has changed") {
  Job job(1, 1, {sparse_table(0, "emb", 1), dense_table(1, "fc", 2)}, 10);
  Client& client = *job.geo[0];
  const float nan = std::numeric_limits<float>::quiet_NaN();
  rows_of(client, 0, {1});
  CHECK(tests::text_of([&] {
          push_rows(client, {1, 1}, {1, nan});
        }) == "table 'emb': a gradient is NaN; nothing of this push was applied");
  CHECK(rows_of(client, 0, {1}) == Values{0});
  CHECK(tests::text_of([&] { push_rows(client, {1, 1}, {1}); }) == "table 'emb': 1 floats, 2 are needed");
  CHECK(tests::text_of([&] { rows_of(client, 1, {1}); }) == "table 1 is dense, not sparse");
  Values dense(2);
  CHECK(tests::text_of([&] {
          client.pull({.sparse = {}, .dense = {{1, dense}}});
        }) == "table 'fc' has no values yet");
  TableConfig admitted = sparse_table(0, "emb", 1);
  admitted.admission = {.kind = Admission::Kind::count, .threshold = 3};
  CHECK(tests::text_of([&] { geo_tables({admitted}); }) == "table 'emb' admits keys by count, in geo mode");
  CHECK(tests::text_of([&] {
          make_geo_client(nullptr, {{}, 1, 0});
        }) == "geo mode with 0 steps between exchanges and 1 trainers");
}
