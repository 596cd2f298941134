#include "ps/roster.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using fleetrun::ps::Roster;
using fleetrun::tests::text_of;

TEST_CASE("a trainer comes, is required, and goes") {
  Roster roster("server 3", 2);
  CHECK(text_of([&] { roster.require(0, 7); }) ==
        "trainer 0 is not known to server 3; was the server started again?");
  roster.hello(0, 7);
  roster.hello(0, 7);
  roster.require(0, 7);
  CHECK(roster.is_here(0));
  CHECK(text_of([&] { roster.require(0, 8); }) ==
        "trainer 0 is not known to server 3; was the server started again?");
  roster.goodbye(0);
  CHECK(text_of([&] { roster.require(0, 7); }) == "trainer 0 has said goodbye to server 3 already");
  CHECK(!roster.are_all_done());
  roster.hello(1, 1);
  roster.goodbye(1);
  CHECK(roster.are_all_done());
}

TEST_CASE("ranks beyond the job and ranks that are taken are refused") {
  Roster roster("server 0", 2);
  CHECK(text_of([&] { roster.hello(2, 1); }) ==
        "trainer 2 wants to join, but server 0 expects 2 trainers, with ranks from 0");
  CHECK(text_of([&] { roster.require(2, 1); }) ==
        "trainer 2 is not known to server 0; was the server started again?");
  roster.hello(1, 1);
  CHECK(text_of([&] { roster.hello(1, 2); }) == "trainer 1 is connected to server 0 already");
}

TEST_CASE("only the incarnation that is here can be lost, and another may follow it") {
  Roster roster("server 0", 2);
  CHECK(!roster.lose(0, 1));
  CHECK(!roster.lose(9, 1));
  roster.hello(1, 1);
  CHECK(!roster.lose(1, 2));
  CHECK(!roster.lost());
  CHECK(roster.lose(1, 1));
  CHECK(roster.lost() == 1u);
  CHECK(text_of([&] { roster.require(1, 1); }) == "server 0 has lost its connection to trainer 1");
  roster.hello(1, 2);
  CHECK(!roster.lost());
}
