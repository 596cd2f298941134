#include "ps/client/recent_groups.h"

#include <doctest/doctest.h>

#include <vector>

using namespace fleetrun::ps;

namespace {

using Keys = std::vector<std::uint64_t>;

std::shared_ptr<const KeyGroups> groups_of(const Keys& keys) {
  return std::make_shared<const KeyGroups>(group_keys(keys, 2));
}

}  // namespace

TEST_CASE("recent groups: those of just these keys, in their order, of their table, once") {
  RecentGroups recent;
  const Keys keys{5, 6, 5, 7};
  const auto groups = groups_of(keys);
  recent.add(1, groups);
  CHECK(recent.take(2, keys) == nullptr);
  CHECK(recent.take(1, Keys{5, 6, 5}) == nullptr);
  CHECK(recent.take(1, Keys{5, 6, 7, 5}) == nullptr);
  CHECK(recent.take(1, Keys{5, 6, 5, 8}) == nullptr);
  CHECK(recent.take(1, keys) == groups);
  CHECK(recent.take(1, keys) == nullptr);
}

TEST_CASE("recent groups: the oldest of equal ones, and no more than fit") {
  RecentGroups recent;
  const Keys keys{1, 2};
  const auto first = groups_of(keys), second = groups_of(keys);
  recent.add(0, first);
  recent.add(0, second);
  CHECK(recent.take(0, keys) == first);
  CHECK(recent.take(0, keys) == second);
  for (std::uint64_t i = 0; i <= RecentGroups::kMax; ++i) recent.add(0, groups_of({i}));
  CHECK(recent.take(0, Keys{0}) == nullptr);
  CHECK(recent.take(0, Keys{1}) != nullptr);
  recent.add(0, groups_of(Keys(RecentGroups::kMaxKeys + 1, 3)));
  CHECK(recent.take(0, Keys{2}) == nullptr);
}
