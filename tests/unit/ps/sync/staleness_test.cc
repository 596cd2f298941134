#include "ps/sync/staleness.h"

#include <doctest/doctest.h>

using namespace fleetrun::ps;
using enum Staleness::Kind;

TEST_CASE(
    "pushes of others between a pull and its push are counted, own ones and those of the other kind are "
    "not") {
  Staleness staleness;
  staleness.pulled({0, 0}, rows);
  staleness.pulled({1, 0}, rows);
  staleness.pulled({1, 1}, rows);
  staleness.pushed({1, 0}, rows);
  staleness.pushed({1, 1}, rows);
  staleness.pulled({0, 0}, dense);
  staleness.pushed({1, 0}, dense);  // its pull is not known
  staleness.pushed({0, 0}, rows);
  staleness.pushed({0, 0}, dense);
  CHECK(staleness.counts() == StalenessCounts{4, 3, 2});
  CHECK(staleness.take(1) == StalenessCounts{2, 0, 0});
  CHECK(staleness.take(0) == StalenessCounts{2, 3, 2});
  CHECK(staleness.take(0) == StalenessCounts{});
  CHECK(staleness.take(0).mean() == 0.0);
}

TEST_CASE("a thread that pulls ahead is counted from the pull that its push came of") {
  Staleness staleness;
  staleness.pulled({0, 0}, rows);
  staleness.pushed({1, 0}, rows);
  staleness.pulled({0, 0}, rows);
  staleness.pushed({0, 0}, rows);
  CHECK(staleness.take(0) == StalenessCounts{1, 1, 1});
  staleness.pulled({0, 0}, rows);
  staleness.pushed({0, 0}, rows);
  CHECK(staleness.take(0).total == 0);
}
