#include "collective/base/grouping.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::collective;

namespace {

using Ranks = std::vector<int>;

Error error_of(const std::vector<std::string>& hosts, const GroupingSpec& spec) {
  try {
    group_ranks(hosts, spec);
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error");
  return Error(ErrorKind::data, "");
}

Grouping flat(Way way, Ranks ranks) {
  return {{{way, std::move(ranks)}}, Way::gloo};
}

}  // namespace

TEST_CASE("ranks of one host share memory, ranks of different hosts use Gloo") {
  CHECK(group_ranks({"a"}, {}) == flat(Way::shared_memory, {0}));
  CHECK(group_ranks({"a", "a", "a"}, {}) == flat(Way::shared_memory, {0, 1, 2}));
  CHECK(group_ranks({"a", "b", "c"}, {}) == flat(Way::gloo, {0, 1, 2}));
  CHECK(group_ranks({"a", "a"}, {.way = Way::gloo}) == flat(Way::gloo, {0, 1}));
  CHECK(group_ranks({"a"}, {.way = Way::gloo}) == flat(Way::shared_memory, {0}));
}

TEST_CASE("several ranks on several hosts form a group on each host, in whatever order they are") {
  const Grouping two = group_ranks({"a", "a", "b", "b"}, {});
  CHECK(two == Grouping{{{Way::shared_memory, {0, 1}}, {Way::shared_memory, {2, 3}}}, Way::gloo});
  const Grouping mixed = group_ranks({"a", "b", "a", "c", "b"}, {});
  CHECK(mixed ==
        Grouping{{{Way::shared_memory, {0, 2}}, {Way::shared_memory, {1, 4}}, {Way::shared_memory, {3}}},
                 Way::gloo});
  CHECK(group_ranks({"a", "a", "b", "b"}, {.hierarchical = false}) == flat(Way::gloo, {0, 1, 2, 3}));
  CHECK(group_ranks({"a", "a", "b", "b"}, {.way = Way::gloo}) == flat(Way::gloo, {0, 1, 2, 3}));
}

TEST_CASE("an inner size makes groups of consecutive ranks, whatever host they are on") {
  const Grouping one_host = group_ranks({"a", "a", "a", "a"}, {.inner_size = 2});
  CHECK(one_host ==
        Grouping{{{Way::shared_memory, {0, 1}}, {Way::shared_memory, {2, 3}}}, Way::shared_memory});
  const Grouping across = group_ranks({"a", "b", "a", "b"}, {.hierarchical = true, .inner_size = 2});
  CHECK(across == Grouping{{{Way::gloo, {0, 1}}, {Way::gloo, {2, 3}}}, Way::shared_memory});
  const Grouping by_gloo =
      group_ranks({"a", "a", "a", "a"}, {.way = Way::gloo, .hierarchical = true, .inner_size = 2});
  CHECK(by_gloo == Grouping{{{Way::gloo, {0, 1}}, {Way::gloo, {2, 3}}}, Way::gloo});
}

TEST_CASE("inner times outer has to be the number of trainers; an inner group of all is flat") {
  const std::vector<std::string> six(6, "a");
  for (const int inner : {1, 4, 5, -2}) {
    const Error error = error_of(six, {.hierarchical = true, .inner_size = inner});
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what())
              .starts_with("inner groups of " + std::to_string(inner) + " do not make up 6 trainers"));
    CHECK(error.hint() == "choose an inner size that divides 6");
  }
  CHECK(group_ranks(six, {.hierarchical = true, .inner_size = 6}).is_flat());
  CHECK(group_ranks(six, {.hierarchical = true, .inner_size = 8}).is_flat());
  CHECK(group_ranks(six, {.hierarchical = false, .inner_size = 4}).is_flat());
}

TEST_CASE("ranks of different hosts cannot share memory, and are named") {
  const Error error = error_of({"a", "a", "b"}, {.way = Way::shared_memory});
  CHECK(error.kind() == ErrorKind::config);
  CHECK(std::string(error.what()) == "rank 0 and rank 2 are on different hosts and cannot share memory");
  CHECK(error.hint() == "leave the way to fleetrun (FLEETRUN_COLLECTIVE=auto)");
}

TEST_CASE("a way is spelled as the user writes it") {
  for (const Way way : {Way::automatic, Way::shared_memory, Way::gloo})
    CHECK(parse_way(std::string(to_string(way))) == way);
  CHECK_THROWS_WITH_AS(parse_way("tcp"), "'tcp' is not a transport between ranks", Error);
}
