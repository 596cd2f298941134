#include "ps/modes/bounded_client.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "ps/memory/in_process.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::sparse_table;

TEST_CASE("no thread of any trainer gets further ahead of another one than the bound, and all end") {
  constexpr std::uint32_t kTrainers = 2, kThreads = 2, kSteps = 200;
  constexpr std::int64_t kBound = 3;
  auto clients = make_in_process(2, kTrainers, Mode::async, {sparse_table(0, "emb", 1)});
  std::vector<std::unique_ptr<Client>> bounded;
  for (auto& client : clients) bounded.push_back(make_bounded_client(std::move(client), kBound, true));
  std::array<std::atomic<std::int64_t>, kTrainers * kThreads> at{};
  // All take part before the first goes on.
  std::atomic<std::int64_t> furthest{0};
  std::vector<float> rows(1);
  const std::vector<std::uint64_t> keys{1};
  for (std::uint32_t i = 0; i < at.size(); ++i) {
    bounded[i / kThreads]->pull(
        {.sparse = {{.table = 0, .keys = keys, .rows = rows}}, .dense = {}, .thread = i % kThreads});
  }
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < at.size(); ++i) {
      threads.emplace_back([&, i] {
        Client& client = *bounded[i / kThreads];
        std::vector<float> mine(1);
        for (std::uint32_t step = 1; step < kSteps; ++step) {
          client.pull(
              {.sparse = {{.table = 0, .keys = keys, .rows = mine}}, .dense = {}, .thread = i % kThreads});
          at[i] = step;
          for (const auto& other : at) {
            const std::int64_t ahead = step - other.load();
            if (ahead > furthest.load()) furthest = ahead;
          }
        }
        client.leave_epoch(i % kThreads);
        at[i] = kSteps * 10;
      });
    }
  }
  // A thread notes a step after it was let in: one more.
  CHECK(furthest <= kBound + 1);
}

TEST_CASE("staleness is counted at the servers, and taken by its trainer") {
  auto clients = make_in_process(1, 2, Mode::async, {sparse_table(0, "emb", 1)});
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> one{1};
  std::vector<float> rows(1);
  const Pull pull{.sparse = {{.table = 0, .keys = keys, .rows = rows}}, .dense = {}, .thread = 0};
  const Push push{.thread = 0, .sparse = {{.table = 0, .keys = keys, .gradients = one}}, .dense = {}};
  clients[0]->pull(pull);
  clients[1]->pull(pull);
  clients[1]->push(push);
  clients[0]->push(push);
  CHECK(clients[0]->take_staleness() == StalenessCounts{1, 1, 1});
  CHECK(clients[1]->take_staleness() == StalenessCounts{1, 0, 0});
  CHECK(clients[0]->take_staleness() == StalenessCounts{});
  CHECK(clients[0]->stat().front().find(R"("staleness":{"pushes":2,"mean":0.5,"highest":1})") !=
        std::string::npos);
}
