#include "ps/base/key_groups.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "ps/base/key_partition.h"

using namespace fleetrun::ps;

TEST_CASE("distinct keys keep their order of first appearance") {
  const std::vector<std::uint64_t> keys{7, 3, 7, ~0ull, 3, 0};
  const KeyGroups groups = group_keys(keys, 1);
  CHECK(groups.keys == std::vector<std::uint64_t>{7, 3, ~0ull, 0});
  CHECK(groups.first == std::vector<std::uint32_t>{0, 1, 3, 5});
  CHECK(groups.group == std::vector<std::uint32_t>{0, 1, 0, 2, 1, 3});
  CHECK(groups.begin == std::vector<std::uint32_t>{0, 4});
}

TEST_CASE("each server gets its own keys, once") {
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> keys(5000);
  for (auto& key : keys) key = random() % 1000;
  for (const std::uint32_t servers : {2u, 3u, 9u}) {
    const KeyGroups groups = group_keys(keys, servers);
    std::set<std::uint64_t> seen;
    for (std::uint32_t s = 0; s < servers; ++s) {
      for (const std::uint64_t key : groups.keys_of(s)) {
        CHECK(server_of(key, servers) == s);
        CHECK(seen.insert(key).second);
      }
    }
    CHECK(seen == std::set<std::uint64_t>(keys.begin(), keys.end()));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      REQUIRE(groups.keys[groups.group[i]] == keys[i]);
      REQUIRE(groups.first[groups.group[i]] <= i);
      REQUIRE(keys[groups.first[groups.group[i]]] == keys[i]);
    }
  }
}

TEST_CASE("gradients of equal keys add up in the order of their positions") {
  std::mt19937_64 random(4);
  std::vector<std::uint64_t> keys(400);
  std::vector<float> gradients(800);
  std::map<std::uint64_t, std::pair<float, float>> expected;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = random() % 90;
    gradients[2 * i] = static_cast<float>(random() % 1000) * 0.001f;
    gradients[2 * i + 1] = -static_cast<float>(i) * 0.1f;
    auto [sum, added] = expected.try_emplace(keys[i], gradients[2 * i], gradients[2 * i + 1]);
    if (added) continue;
    sum->second.first += gradients[2 * i];
    sum->second.second += gradients[2 * i + 1];
  }
  for (const std::uint32_t servers : {1u, 4u}) {
    const KeyGroups groups = group_keys(keys, servers);
    std::vector<std::vector<float>> sums(servers);
    std::vector<float*> outputs;
    for (std::uint32_t s = 0; s < servers; ++s) {
      sums[s].resize(groups.keys_of(s).size() * 2);
      outputs.push_back(sums[s].data());
    }
    sum_by_group(groups, gradients, 2, outputs);
    for (std::uint32_t s = 0; s < servers; ++s) {
      for (std::size_t i = 0; i < groups.keys_of(s).size(); ++i) {
        const auto& [first, second] = expected.at(groups.keys_of(s)[i]);
        CHECK(sums[s][2 * i] == first);
        CHECK(sums[s][2 * i + 1] == second);
      }
    }
  }
}

TEST_CASE("no keys make no groups") {
  const KeyGroups groups = group_keys({}, 3);
  CHECK(groups.keys.empty());
  CHECK(groups.begin == std::vector<std::uint32_t>{0, 0, 0, 0});
}

TEST_CASE("equal keys are counted where their sums are written") {
  const std::vector<std::uint64_t> keys{5, 9, 5, 7, 5};
  for (const std::uint32_t servers : {1u, 3u}) {
    const KeyGroups groups = group_keys(keys, servers);
    std::vector<std::vector<float>> counts(servers, std::vector<float>(3, -1.0f));
    std::vector<float*> outputs;
    for (auto& of_server : counts) outputs.push_back(of_server.data());
    count_by_group(groups, outputs);
    for (std::uint32_t s = 0; s < servers; ++s) {
      const auto mine = groups.keys_of(s);
      for (std::size_t i = 0; i < mine.size(); ++i) CHECK(counts[s][i] == (mine[i] == 5 ? 3.0f : 1.0f));
    }
  }
}
