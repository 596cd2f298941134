#include "launcher/run/world_feed.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace fleetrun::launcher;
using Json = nlohmann::json;

namespace {

World two_hosts() {
  World world;
  world.generation = 5;
  world.attempt = 2;
  world.run = std::string(32, 'a');
  world.members = {
      {std::string(32, '1'),
       "h1",
       "abcdef",
       {},
       {.host = "10.0.0.1", .trainers = {6170}, .servers = {6180}},
       0,
       0},
      {std::string(32, '2'),
       "h\xff"
       "2",
       "ghijkl",
       {},
       {.host = "::1", .trainers = {7000, 7001}, .servers = {}},
       3,
       1},
  };
  return world;
}

}  // namespace

TEST_CASE("a world is one line of JSON with the processes of all hosts and their ranks") {
  const std::string line = world_line(two_hosts(), 1, true);
  REQUIRE(line.back() == '\n');
  CHECK(line.find('\n') == line.size() - 1);
  const Json world = Json::parse(line);
  CHECK(world["epoch"] == 5);
  CHECK(world["attempt"] == 2);
  CHECK(world["run"] == std::string(32, 'a'));
  CHECK(world["hash"] == two_hosts().hash());
  CHECK(world["in_place"] == true);
  CHECK(world["node"] == std::string(32, '2'));
  CHECK(world["node_rank"] == 1);
  CHECK(world["nodes"].size() == 2);
  CHECK(world["nodes"][0] == "h1");
  REQUIRE(world["trainers"].size() == 3);
  CHECK(world["trainers"][0] ==
        Json({{"rank", 0}, {"endpoint", "10.0.0.1:6170"}, {"node", "h1"}, {"id", std::string(32, '1')}}));
  CHECK(world["trainers"][1]["rank"] == 3);
  CHECK(world["trainers"][2]["rank"] == 4);
  CHECK(world["trainers"][2]["endpoint"] == "[::1]:7001");
  REQUIRE(world["servers"].size() == 1);
  CHECK(world["servers"][0]["endpoint"] == "10.0.0.1:6180");
}

TEST_CASE("a world without members, as told to nobody's host, is still a line") {
  const Json world = Json::parse(world_line({}, 0, false));
  CHECK(world["trainers"] == Json::array());
  CHECK(world["node"] == "");
  CHECK(world["in_place"] == false);
}
