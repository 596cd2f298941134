#include "ps/memory/in_process.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

#include "runtime/base/error.h"

using fleetrun::Error;
using namespace fleetrun::ps;

namespace {

TableConfig sparse(std::uint32_t id, std::string name, std::uint64_t width, UpdateRule::Kind rule) {
  TableConfig config;
  config.id = id;
  config.name = std::move(name);
  config.kind = TableConfig::Kind::sparse;
  config.width = width;
  config.rule.kind = rule;
  config.rule.learning_rate = 0.5f;
  return config;
}

TableConfig dense(std::uint32_t id, std::string name, std::uint64_t width, UpdateRule::Kind rule) {
  TableConfig config = sparse(id, std::move(name), width, rule);
  config.kind = TableConfig::Kind::dense;
  return config;
}

std::vector<float> pull_rows(Client& client, std::uint32_t table, const std::vector<std::uint64_t>& keys,
                             std::size_t width) {
  std::vector<float> rows(keys.size() * width, -1.0f);
  client.pull({.sparse = {{table, keys, rows}}, .dense = {}});
  return rows;
}

void push_rows(Client& client, std::uint32_t table, const std::vector<std::uint64_t>& keys,
               const std::vector<float>& gradients, std::uint32_t thread = 0) {
  client.push({.thread = thread, .sparse = {{table, keys, gradients}}, .dense = {}});
}

// Runs `work(i)` for i in [0, count) on threads of their own.
template <class Work>
void on_threads(std::size_t count, Work work) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

std::string text_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a pull fills every position, also those of equal keys, over any number of servers") {
  for (const std::uint32_t servers : {1u, 2u, 5u}) {
    TableConfig config = sparse(3, "emb", 2, UpdateRule::Kind::sgd);
    config.initializer = {Initializer::Kind::uniform, -1.0, 1.0, 7};
    const auto clients = make_in_process(servers, 1, Mode::async, {config});
    const auto rows = pull_rows(*clients[0], 3, {5, 9, 5, 0, ~0ull, 9, 5}, 2);
    const auto again = pull_rows(*clients[0], 3, {9, 5}, 2);
    for (const std::size_t i : {0, 2, 6})
      CHECK(std::equal(again.begin() + 2, again.end(), rows.begin() + 2 * i));
    for (const std::size_t i : {1, 5})
      CHECK(std::equal(again.begin(), again.begin() + 2, rows.begin() + 2 * i));
    CHECK(rows[0] != rows[2]);
    CHECK(clients[0]->rows(3) == 4);
  }
}

TEST_CASE("first values do not depend on the number of servers or the order of pulls") {
  TableConfig config = sparse(0, "emb", 3, UpdateRule::Kind::sgd);
  config.initializer = {Initializer::Kind::truncated_normal, 0.0, 0.1, 11};
  std::vector<std::uint64_t> keys(200);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i * 1000;
  const auto one = make_in_process(1, 1, Mode::async, {config});
  const auto three = make_in_process(3, 1, Mode::async, {config});
  std::vector<std::uint64_t> reversed(keys.rbegin(), keys.rend());
  pull_rows(*three[0], 0, reversed, 3);
  CHECK(pull_rows(*one[0], 0, keys, 3) == pull_rows(*three[0], 0, keys, 3));
}

TEST_CASE("gradients of equal keys are added up before the one update") {
  const auto clients = make_in_process(2, 1, Mode::async, {sparse(0, "emb", 1, UpdateRule::Kind::adagrad)});
  push_rows(*clients[0], 0, {4, 8, 4}, {1.0f, 2.0f, 2.0f});
  // One step with 3: a = 9, w = -0.5 * 3 / 3.
  CHECK(pull_rows(*clients[0], 0, {4, 8}, 1) == std::vector<float>{-0.5f, -0.5f});
}

TEST_CASE("a dense table is split over servers, also when it is smaller than their number") {
  for (const std::uint64_t width : {1, 3, 7, 100000}) {
    const auto clients = make_in_process(5, 1, Mode::async, {dense(0, "fc", width, UpdateRule::Kind::sgd)});
    std::vector<float> values(width);
    for (std::size_t i = 0; i < width; ++i) values[i] = static_cast<float>(i);
    clients[0]->set_dense(0, values);
    const std::vector<float> gradients(width, 2.0f);
    clients[0]->push({.thread = 0, .sparse = {}, .dense = {{0, gradients}}});
    std::vector<float> out(width);
    clients[0]->pull({.sparse = {}, .dense = {{0, out}}});
    for (std::size_t i = 0; i < width; ++i) REQUIRE(out[i] == values[i] - 1.0f);
  }
}

TEST_CASE("a dense table without values is an error, not zeros") {
  const auto clients = make_in_process(1, 1, Mode::async, {dense(0, "fc", 2, UpdateRule::Kind::sgd)});
  std::vector<float> out(2);
  CHECK(text_of([&] {
          clients[0]->pull({.sparse = {}, .dense = {{0, out}}});
        }) == "table 'fc' has no values yet");
  CHECK(text_of([&] {
          clients[0]->push({.thread = 0, .sparse = {}, .dense = {{0, out}}});
        }) == "table 'fc' has no values yet");
}

TEST_CASE("a gradient that is no number changes nothing, on any server") {
  const auto clients = make_in_process(
      3, 1, Mode::async,
      {sparse(0, "emb", 1, UpdateRule::Kind::sum), sparse(1, "wide", 1, UpdateRule::Kind::sum)});
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const std::vector<std::uint64_t> keys{1, 2, 3, 4};
    const std::vector<float> good(4, 1.0f);
    const std::vector<float> mixed{1.0f, 1.0f, bad, 1.0f};
    CHECK(text_of([&] {
            clients[0]->push({.thread = 0, .sparse = {{0, keys, good}, {1, keys, mixed}}, .dense = {}});
          }) == std::string("table 'wide': a gradient is ") + (std::isnan(bad) ? "NaN" : "infinite") +
                    "; nothing of this push was sent");
  }
  CHECK(clients[0]->rows(0) == 0);
}

TEST_CASE("sums over asynchronous trainers and threads are exact") {
  constexpr std::size_t kTrainers = 3;
  constexpr std::size_t kThreads = 2;
  constexpr std::size_t kSteps = 50;
  const auto clients = make_in_process(
      2, kTrainers, Mode::async,
      {sparse(0, "sum", 2, UpdateRule::Kind::sum), dense(1, "bias", 3, UpdateRule::Kind::sum)});
  clients[0]->set_dense(1, std::vector<float>(3, 0.0f));
  std::vector<std::uint64_t> keys(500);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  on_threads(kTrainers * kThreads, [&](std::size_t i) {
    const std::vector<float> ones(keys.size() * 2, 1.0f);
    for (std::size_t step = 0; step < kSteps; ++step) {
      clients[i % kTrainers]->push({.thread = static_cast<std::uint32_t>(i / kTrainers),
                                    .sparse = {{0, keys, ones}},
                                    .dense = {{1, std::span(ones).first(3)}}});
    }
  });
  const auto rows = pull_rows(*clients[0], 0, keys, 2);
  CHECK(std::all_of(rows.begin(), rows.end(), [](float v) { return v == kTrainers * kThreads * kSteps; }));
  std::vector<float> bias(3);
  clients[0]->pull({.sparse = {}, .dense = {{1, bias}}});
  CHECK(bias == std::vector<float>(3, kTrainers * kThreads * kSteps));
}

namespace {

// Three trainers with two threads each push different gradients; thread (1, 1) makes fewer steps. Pulls and
// pushes are interleaved in an order that `shuffle` changes.
std::vector<float> run_sync(std::uint32_t shuffle) {
  constexpr std::uint32_t kTrainers = 3;
  constexpr std::uint32_t kThreads = 2;
  TableConfig config = sparse(0, "emb", 2, UpdateRule::Kind::adam);
  config.initializer = {Initializer::Kind::normal, 0.0, 1.0, 5};
  const auto clients = make_in_process(2, kTrainers, Mode::sync, {config});
  const std::vector<std::uint64_t> keys{1, 2, 3, 4, 5, 6, 7, 8};
  on_threads(kTrainers, [&](std::size_t t) { clients[t]->begin_epoch(kThreads); });
  std::atomic<std::uint32_t> arrivals{0};
  on_threads(kTrainers * kThreads, [&](std::size_t i) {
    // A rotation of the order in which threads start to push.
    const auto turn = static_cast<std::uint32_t>((i + shuffle) % (kTrainers * kThreads));
    while (arrivals.load() < turn) std::this_thread::yield();
    ++arrivals;
    const auto trainer = static_cast<std::uint32_t>(i / kThreads);
    const auto thread = static_cast<std::uint32_t>(i % kThreads);
    const std::size_t steps = i == 3 ? 4 : 10;
    for (std::size_t step = 0; step < steps; ++step) {
      std::vector<float> rows = pull_rows(*clients[trainer], 0, keys, 2);
      for (float& value : rows) value = value * 0.1f + static_cast<float>(i) * 0.37f;
      push_rows(*clients[trainer], 0, keys, rows, thread);
    }
    clients[trainer]->leave_epoch(thread);
  });
  return pull_rows(*clients[0], 0, keys, 2);
}

}  // namespace

TEST_CASE("two synchronous runs give the same bits, whoever arrives first") {
  const std::vector<float> first = run_sync(0);
  for (std::uint32_t shuffle = 1; shuffle < 6; ++shuffle) CHECK(run_sync(shuffle) == first);
}

TEST_CASE("a synchronous step is the average over those that pushed it") {
  const auto clients = make_in_process(1, 2, Mode::sync, {sparse(0, "sum", 1, UpdateRule::Kind::sum)});
  on_threads(2, [&](std::size_t t) { clients[t]->begin_epoch(1); });
  const std::vector<float> gradients{2.0f, 6.0f};
  on_threads(2, [&](std::size_t t) { push_rows(*clients[t], 0, {7, 70 + t}, {gradients[t], gradients[t]}); });
  CHECK(pull_rows(*clients[0], 0, {7, 70, 71}, 1) == std::vector<float>{4.0f, 1.0f, 3.0f});
  // Trainer 1 leaves: trainer 0 goes on alone, and its gradient is no longer halved.
  clients[1]->leave_epoch(0);
  push_rows(*clients[0], 0, {7}, {1.0f});
  CHECK(pull_rows(*clients[1], 0, {7}, 1) == std::vector<float>{5.0f});
}

TEST_CASE("leaving completes the step that others wait for") {
  const auto clients = make_in_process(2, 2, Mode::sync, {sparse(0, "sum", 1, UpdateRule::Kind::sum)});
  on_threads(2, [&](std::size_t t) { clients[t]->begin_epoch(1); });
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> ones{1.0f};
  const auto pending = clients[0]->push_async({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
  clients[1]->leave_epoch(0);
  pending->wait();
  CHECK(pull_rows(*clients[0], 0, keys, 1) == ones);
}

TEST_CASE("a synchronous push outside a pass, and a second one in a step, say so") {
  const auto clients = make_in_process(1, 2, Mode::sync, {sparse(0, "sum", 1, UpdateRule::Kind::sum)});
  CHECK(text_of([&] { push_rows(*clients[0], 0, {1}, {1.0f}, 3); }) ==
        "trainer 0, thread 3 pushes, but has not joined the epoch");
  on_threads(2, [&](std::size_t t) { clients[t]->begin_epoch(1); });
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> ones{1.0f};
  const auto pending = clients[0]->push_async({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
  CHECK(text_of([&] { push_rows(*clients[0], 0, {1}, {1.0f}); }) ==
        "trainer 0, thread 0 pushes twice in one step");
  push_rows(*clients[1], 0, {1}, {3.0f});
  pending->wait();
  CHECK(pull_rows(*clients[0], 0, keys, 1) == std::vector<float>{2.0f});
}

TEST_CASE("a trainer that is dropped without a goodbye fails those who wait for it, by name") {
  auto clients = make_in_process(1, 2, Mode::sync, {sparse(0, "sum", 1, UpdateRule::Kind::sum)});
  on_threads(2, [&](std::size_t t) { clients[t]->begin_epoch(1); });
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> ones{1.0f};
  const auto pending = clients[0]->push_async({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
  clients[1].reset();
  const std::string gone = "trainer 1 is gone: its connection to server 0 ended without a goodbye";
  CHECK(text_of([&] { pending->wait(); }) == gone);
  CHECK(text_of([&] { clients[0]->barrier(); }) == gone);
}

TEST_CASE("a barrier waits for all trainers that have not said goodbye") {
  const auto clients = make_in_process(2, 3, Mode::async, {});
  clients[2]->goodbye();
  std::atomic<int> before{0};
  on_threads(2, [&](std::size_t t) {
    for (int round = 1; round <= 100; ++round) {
      ++before;
      clients[t]->barrier();
      CHECK(before.load() >= 2 * round);
      clients[t]->barrier();
    }
  });
}

TEST_CASE("all_reduce_sum adds up in trainer order and refuses sizes that differ") {
  const auto clients = make_in_process(1, 3, Mode::async, {});
  std::vector<std::vector<double>> values{{1e16, 1}, {1, 2}, {-1e16, 3}};
  on_threads(3, [&](std::size_t t) { clients[t]->all_reduce_sum(values[t]); });
  for (const auto& sum : values) CHECK(sum == std::vector<double>{(1e16 + 1) - 1e16, 6});
  std::vector<std::vector<double>> uneven{{1}, {1, 2}, {1}};
  std::vector<std::string> texts(3);
  on_threads(3, [&](std::size_t t) { texts[t] = text_of([&] { clients[t]->all_reduce_sum(uneven[t]); }); });
  for (const auto& text : texts) {
    CHECK(text == "trainer 0 brings 1 values to all_reduce_sum, trainer 1 brings 2");
  }
}

TEST_CASE("requests that do not fit the tables are refused with both sides named") {
  const auto clients =
      make_in_process(1, 1, Mode::async,
                      {sparse(0, "emb", 2, UpdateRule::Kind::sgd), dense(1, "fc", 3, UpdateRule::Kind::sgd)});
  std::vector<float> out(3);
  const std::vector<std::uint64_t> keys{1};
  CHECK(text_of([&] {
          clients[0]->pull({.sparse = {{9, keys, out}}, .dense = {}});
        }) == "there is no table 9");
  CHECK(text_of([&] {
          clients[0]->pull({.sparse = {{1, keys, out}}, .dense = {}});
        }) == "table 'fc' is dense, used as sparse");
  CHECK(text_of([&] {
          clients[0]->pull({.sparse = {{0, keys, out}}, .dense = {}});
        }) == "table 'emb': 1 keys of width 2 need 2 floats, there are 3");
  CHECK(text_of([&] { clients[0]->set_dense(1, std::span(out).first(2)); }) ==
        "table 'fc' has 3 values, the request has 2");
  CHECK(text_of([&] { make_in_process(0, 1, Mode::async, {}); }) ==
        "0 servers and 1 trainers in one process; at least one of each is needed");
}

TEST_CASE("an empty pull and an empty push are answered") {
  const auto clients = make_in_process(2, 1, Mode::async, {sparse(0, "emb", 2, UpdateRule::Kind::sgd)});
  clients[0]->pull({});
  clients[0]->push({});
  clients[0]->pull({.sparse = {{0, {}, {}}}, .dense = {}});
  CHECK(clients[0]->rows(0) == 0);
}

TEST_CASE("shows and clicks of equal keys add up on their way, and without any a position is one show") {
  for (const Mode mode : {Mode::async, Mode::sync}) {
    TableConfig config = sparse(0, "t", 1, UpdateRule::Kind::sum);
    config.accessor.kind = Accessor::Kind::ctr;
    const auto clients = make_in_process(2, 1, mode, {config});
    Client& client = *clients[0];
    client.begin_epoch(1);
    const std::vector<std::uint64_t> keys{1, 2, 1, 3, 1};
    const std::vector<float> gradients{1, 1, 1, 1, 1};
    client.push({.thread = 0, .sparse = {{0, keys, gradients}}, .dense = {}});
    CHECK(pull_rows(client, 0, {1, 2}, 3) == std::vector<float>{3, 0, 3, 1, 0, 1});
    const std::vector<float> shows{2, 0, 3, 1, 1};
    const std::vector<float> clicks{1, 0, 1, 0, 0};
    client.push({.thread = 0, .sparse = {{0, keys, gradients, shows, clicks, 5}}, .dense = {}});
    CHECK(pull_rows(client, 0, {1, 2, 3}, 3) == std::vector<float>{9, 2, 6, 1, 0, 2, 2, 0, 2});
    std::vector<float> row(3, -1.0f);
    const std::vector<std::uint64_t> unknown{77};
    Pull look{.sparse = {{0, unknown, row}}, .dense = {}};
    look.create = false;
    client.pull(look);
    CHECK(row == std::vector<float>{0, 0, 0});
    CHECK(client.rows(0) == 3);
    const auto refusal = [&](std::span<const float> some_shows, std::span<const float> some_clicks) {
      try {
        client.push({.thread = 0, .sparse = {{0, keys, gradients, some_shows, some_clicks}}, .dense = {}});
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string("no error");
    };
    CHECK(refusal(std::span(shows).first(2), {}) == "table 't': 5 keys come with 2 shows");
    CHECK(refusal({}, std::span(clicks).first(1)) == "table 't': 5 keys come with 1 clicks");
    const std::vector<float> bad(5, NAN);
    CHECK(refusal(bad, {}) == "table 't': a show is NaN; nothing of this push was sent");
    client.leave_epoch(0);
  }
}

TEST_CASE("any number of servers clip the mean of several trainers as one does") {
  using enum Clip::Kind;
  for (const Clip::Kind kind : {norm, global_norm}) {
    std::vector<std::vector<float>> moved;
    for (const std::uint32_t servers : {1u, 2u, 3u}) {
      TableConfig rows = sparse(0, "emb", 2, UpdateRule::Kind::sum);
      TableConfig fc = dense(1, "fc", 5, UpdateRule::Kind::sum);
      rows.clip = fc.clip = {kind, 0.0f, 1.0f};
      const auto clients = make_in_process(servers, 2, Mode::sync, {rows, fc});
      clients[0]->set_dense(1, std::vector<float>(5));
      on_threads(2, [&](std::size_t i) {
        clients[i]->begin_epoch(1);
        const float sign = i == 0 ? 1.0f : 3.0f;
        const std::vector<std::uint64_t> keys{5, 6 + i, 9};
        const std::vector<float> gradients{sign, 2.0f, 3.0f, -sign, 1.0f, 2.0f};
        const std::vector<float> of_fc{4.0f, -sign, 2.0f, 0.0f, 1.0f};
        for (int step = 0; step < 3; ++step)
          clients[i]->push({.thread = 0, .sparse = {{0, keys, gradients}}, .dense = {{1, of_fc}}});
        clients[i]->leave_epoch(0);
      });
      std::vector<float> values(5);
      clients[0]->pull({.sparse = {}, .dense = {{1, values}}});
      const std::vector<float> pulled = pull_rows(*clients[0], 0, {5, 6, 7, 9}, 2);
      values.insert(values.end(), pulled.begin(), pulled.end());
      moved.push_back(values);
      float squares = 0.0f;
      for (const float value : values) squares += value * value;
      // Three steps in one direction: of the norm 1 each, or of each table's.
      CHECK(std::sqrt(squares) == doctest::Approx(kind == norm ? 3.0 * std::sqrt(2.0) : 3.0));
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == doctest::Approx(moved[0][i]));
    }
  }
}

TEST_CASE("trainers that wait in different calls are told so, once each, and go on when the others come") {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> told;
  ClientOptions options{0, 2, Mode::async, {sparse(0, "t", 1, UpdateRule::Kind::sum)}};
  options.tell_waits = std::chrono::milliseconds(20);
  options.warn = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    told.push_back(text);
    changed.notify_all();
  };
  const auto clients = make_in_process(2, options);
  std::vector<double> sum{1.0}, other{2.0};
  std::thread first([&] { clients[0]->barrier(); });
  std::thread second([&] { clients[1]->all_reduce_sum(sum); });
  {
    std::unique_lock lock(mutex);
    CHECK(changed.wait_for(lock, std::chrono::minutes(1), [&] { return told.size() == 2; }));
  }
  clients[1]->barrier();
  clients[0]->all_reduce_sum(other);
  first.join();
  second.join();
  CHECK(sum[0] == 3.0);
  REQUIRE(told.size() == 2);
  for (const std::string& text : told) {
    CHECK(text.starts_with("no trainer goes on: trainer 0 waits in barrier for "));
    CHECK(text.find(" s, trainer 1 in all_reduce for ") != std::string::npos);
  }
}
