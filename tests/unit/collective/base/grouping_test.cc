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

Grouping flat(Transport transport, Ranks ranks) {
  return {{{transport, std::move(ranks)}}, Transport::gloo};
}

}  // namespace

TEST_CASE("ranks of one host share memory, ranks of different hosts use Gloo") {
  CHECK(group_ranks({"a"}, {}) == flat(Transport::shared_memory, {0}));
  CHECK(group_ranks({"a", "a", "a"}, {}) == flat(Transport::shared_memory, {0, 1, 2}));
  CHECK(group_ranks({"a", "b", "c"}, {}) == flat(Transport::gloo, {0, 1, 2}));
  CHECK(group_ranks({"a", "a"}, {.transport = Transport::gloo}) == flat(Transport::gloo, {0, 1}));
  CHECK(group_ranks({"a"}, {.transport = Transport::gloo}) == flat(Transport::shared_memory, {0}));
}

TEST_CASE("several ranks on several hosts form a group on each host, in whatever order they are") {
  const Grouping two = group_ranks({"a", "a", "b", "b"}, {});
  CHECK(two ==
        Grouping{{{Transport::shared_memory, {0, 1}}, {Transport::shared_memory, {2, 3}}}, Transport::gloo});
  const Grouping mixed = group_ranks({"a", "b", "a", "c", "b"}, {});
  CHECK(mixed == Grouping{{{Transport::shared_memory, {0, 2}},
                           {Transport::shared_memory, {1, 4}},
                           {Transport::shared_memory, {3}}},
                          Transport::gloo});
  CHECK(group_ranks({"a", "a", "b", "b"}, {.hierarchical = false}) == flat(Transport::gloo, {0, 1, 2, 3}));
  CHECK(group_ranks({"a", "a", "b", "b"}, {.transport = Transport::gloo}) ==
        flat(Transport::gloo, {0, 1, 2, 3}));
}

TEST_CASE("an inner size makes groups of consecutive ranks, whatever host they are on") {
  const Grouping one_host = group_ranks({"a", "a", "a", "a"}, {.inner_size = 2});
  CHECK(one_host == Grouping{{{Transport::shared_memory, {0, 1}}, {Transport::shared_memory, {2, 3}}},
                             Transport::shared_memory});
  const Grouping across = group_ranks({"a", "b", "a", "b"}, {.hierarchical = true, .inner_size = 2});
  CHECK(across == Grouping{{{Transport::gloo, {0, 1}}, {Transport::gloo, {2, 3}}}, Transport::shared_memory});
  const Grouping by_gloo = group_ranks({"a", "a", "a", "a"},
                                       {.transport = Transport::gloo, .hierarchical = true, .inner_size = 2});
  CHECK(by_gloo == Grouping{{{Transport::gloo, {0, 1}}, {Transport::gloo, {2, 3}}}, Transport::gloo});
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
  const Error error = error_of({"a", "a", "b"}, {.transport = Transport::shared_memory});
  CHECK(error.kind() == ErrorKind::config);
  CHECK(std::string(error.what()) == "rank 0 and rank 2 are on different hosts and cannot share memory");
  CHECK(error.hint() == "leave the way to fleetrun (FLEETRUN_COLLECTIVE=auto)");
}

TEST_CASE("a way is spelled as the user writes it") {
  for (const Transport transport : {Transport::automatic, Transport::shared_memory, Transport::gloo})
    CHECK(parse_transport(std::string(to_string(transport))) == transport);
  CHECK_THROWS_WITH_AS(parse_transport("tcp"), "'tcp' is not a transport between ranks", Error);
}
