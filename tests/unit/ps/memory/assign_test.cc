// Client::assign over servers in this process.
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "ps/memory/in_process.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;
using fleetrun::tests::sparse_table;
using fleetrun::tests::text_of;

namespace {

using Keys = std::vector<std::uint64_t>;
using Values = std::vector<float>;

Values pulled(Client& client, const Keys& keys, std::size_t width) {
  Values rows(keys.size() * width);
  client.pull({.sparse = {{0, keys, rows}}, .dense = {}, .create = false});
  return rows;
}

}  // namespace

TEST_CASE("assigned rows are on their servers, whatever their number and the mode") {
  for (const std::uint32_t servers : {1u, 2u, 5u}) {
    for (const Mode mode : {Mode::async, Mode::sync, Mode::half_async}) {
      const auto clients = make_in_process(servers, 2, mode, {sparse_table(0, "emb", 2)});
      const Keys keys{5, 9, 0, ~0ull};
      const Values rows{1, 2, 3, 4, 5, 6, 7, 8};
      clients[0]->assign(0, keys, rows);
      CHECK(pulled(*clients[1], keys, 2) == rows);
      CHECK(clients[1]->rows(0) == 4);
      clients[1]->assign(0, {}, {});
      CHECK(pulled(*clients[0], {9, 7}, 2) == Values{3, 4, 0, 0});
    }
  }
}

TEST_CASE("more rows than fit into one change go in several") {
  constexpr std::size_t kWidth = 1 << 12, kCount = (TableClient::kAssignedAtOnce >> 12) * 2 + 3;
  const auto clients = make_in_process(2, 1, Mode::async, {sparse_table(0, "emb", kWidth)});
  Keys keys(kCount);
  Values rows(kCount * kWidth);
  for (std::size_t i = 0; i < kCount; ++i) {
    keys[i] = i * 7919;
    rows[i * kWidth] = static_cast<float>(i);
  }
  clients[0]->assign(0, keys, rows);
  CHECK(clients[0]->next_change() == 4);
  CHECK(clients[0]->rows(0) == kCount);
  const Keys some{keys.front(), keys[kCount / 2], keys.back()};
  const Values found = pulled(*clients[0], some, kWidth);
  CHECK(found[0] == 0.0f);
  CHECK(found[kWidth] == static_cast<float>(kCount / 2));
  CHECK(found[2 * kWidth] == static_cast<float>(kCount - 1));
}

TEST_CASE("what cannot be assigned changes nothing, and is named") {
  auto adagrad = sparse_table(0, "emb", 2, UpdateRule::Kind::adagrad);
  const auto clients = make_in_process(2, 1, Mode::async, {adagrad, dense_table(1, "fc", 4)});
  Client& client = *clients[0];
  const Keys keys{5, 9}, twice{5, 9, 5};
  const Values rows{1, 2, 3, 4}, three{1, 2, 3, 4, 5, 6};
  CHECK(text_of([&] { client.assign(0, twice, three); }) == "table 'emb': key 5 is there twice, at 0 and 2");
  CHECK(text_of([&] { client.assign(0, keys, three); }) ==
        "table 'emb': 2 keys of width 2 need 4 floats, there are 6");
  CHECK(text_of([&] { client.assign(1, keys, rows); }) == "table 'fc' is dense, used as sparse");
  CHECK(text_of([&] { client.assign(7, keys, rows); }) == "there is no table 7");
  for (const auto& [bad, name] : {std::pair(std::numeric_limits<float>::quiet_NaN(), "NaN"),
                                  std::pair(-std::numeric_limits<float>::infinity(), "infinite"),
                                  std::pair(3e15f, "3e+15, and more than 1e+15")}) {
    const Values values{1, 2, 3, bad};
    CHECK(text_of([&] { client.assign(0, keys, values); }) ==
          "table 'emb': a value to assign is " + std::string(name) + "; nothing was assigned");
  }
  CHECK(client.rows(0) == 0);
}
