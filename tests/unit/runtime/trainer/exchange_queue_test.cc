#include "runtime/trainer/exchange_queue.h"

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "ps/memory/in_process.h"
#include "runtime/base/error.h"

using fleetrun::Error;
using fleetrun::runtime::ExchangeQueue;
namespace ps = fleetrun::ps;

namespace {

std::vector<std::unique_ptr<ps::Client>> make_clients() {
  ps::TableConfig rows;
  rows.name = "rows";
  rows.kind = ps::TableConfig::Kind::sparse;
  rows.width = 1;
  rows.rule.kind = ps::UpdateRule::Kind::sum;
  return ps::make_in_process(1, 1, ps::Mode::async, {rows});
}

const std::array<std::uint64_t, 1> kKey = {7};

}  // namespace

TEST_CASE("a pull that was asked for after a push sees it applied, every time") {
  const auto clients = make_clients();
  ExchangeQueue queue(*clients[0]);
  const std::array<float, 1> one = {1.0f};
  std::vector<std::array<float, 1>> seen(200);
  std::vector<std::unique_ptr<ps::Pending>> pending;
  for (auto& row : seen) {
    pending.push_back(queue.push_async({.thread = 0, .sparse = {{0, kKey, one}}, .dense = {}}));
    pending.push_back(queue.pull_async({.sparse = {{0, kKey, row}}, .dense = {}}));
  }
  for (auto& one_pending : pending) one_pending->wait();
  for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i][0] == static_cast<float>(i + 1));
  clients[0]->goodbye();
}

TEST_CASE("an error reaches the one who waits for what failed, and the next request is served") {
  const auto clients = make_clients();
  ExchangeQueue queue(*clients[0]);
  const std::array<float, 1> bad = {std::numeric_limits<float>::quiet_NaN()};
  std::array<float, 1> row = {5.0f};
  const auto push = queue.push_async({.thread = 0, .sparse = {{0, kKey, bad}}, .dense = {}});
  const auto pull = queue.pull_async({.sparse = {{0, kKey, row}}, .dense = {}});
  CHECK_THROWS_AS(push->wait(), Error);
  pull->wait();
  CHECK(row[0] == 0.0f);
  clients[0]->goodbye();
}

TEST_CASE("what was asked for is finished when the queue ends, and so are the ones nobody waited for") {
  const auto clients = make_clients();
  const std::array<float, 1> one = {1.0f};
  {
    ExchangeQueue queue(*clients[0]);
    for (int i = 0; i < 50; ++i) {
      const auto dropped = queue.push_async({.thread = 0, .sparse = {{0, kKey, one}}, .dense = {}});
    }
  }
  std::array<float, 1> row = {0.0f};
  clients[0]->pull({.sparse = {{0, kKey, row}}, .dense = {}});
  CHECK(row[0] == 50.0f);
  clients[0]->goodbye();
}
