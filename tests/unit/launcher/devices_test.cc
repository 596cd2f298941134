#include "launcher/host.h"

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

TEST_CASE("visible devices end at the first one that is none, as CUDA reads the list") {
  CHECK(parse_visible_devices("").empty());
  CHECK(parse_visible_devices("-1").empty());
  CHECK(parse_visible_devices("2,0,-1,3") == std::vector<std::string>{"2", "0"});
  CHECK(parse_visible_devices("GPU-8a,MIG-1") == std::vector<std::string>{"GPU-8a", "MIG-1"});
}

TEST_CASE("a trainer per device, and one on the CPU where there is none") {
  JobConfig config;
  CHECK(plan_devices(config, {}, "x").trainers == 1);
  CHECK(plan_devices(config, {}, "x").indices.empty());
  CHECK(plan_devices(config, {"0", "1", "2"}, "x").trainers == 3);
  config.nproc_per_node = 2;
  CHECK(plan_devices(config, {"0", "1", "2"}, "x").trainers == 2);
}

TEST_CASE("devices are handed on as places in the visible list") {
  JobConfig config;
  config.devices = {"7", "5"};
  const DevicePlan plan = plan_devices(config, {"5", "6", "7"}, "x");
  CHECK(plan.trainers == 2);
  CHECK(plan.indices == std::vector<std::string>{"2", "0"});
}

TEST_CASE("more trainers than devices run on the CPU, unless devices were asked for") {
  JobConfig config;
  config.nproc_per_node = 3;
  CHECK(plan_devices(config, {"0"}, "x").indices.empty());
  CHECK(plan_devices(config, {"0"}, "x").trainers == 3);
  config.devices = {"0"};
  CHECK_THROWS_WITH_AS(plan_devices(config, {"0"}, "x"), "3 trainers asked for, 1 devices given", Error);
}

TEST_CASE("a device that is not there is named, with what is") {
  JobConfig config;
  config.devices = {"0", "1"};
  CHECK_THROWS_WITH_AS(plan_devices(config, {}, "/dev/nvidia*"),
                       "device 0 of --devices is not there: this host has no devices, says /dev/nvidia*",
                       Error);
  CHECK_THROWS_WITH_AS(
      plan_devices(config, {"0", "3"}, "CUDA_VISIBLE_DEVICES (=0,3)"),
      "device 1 of --devices is not there: the visible devices are 0,3, says CUDA_VISIBLE_DEVICES (=0,3)",
      Error);
}
