#include "launcher/model/world.h"

#include <doctest/doctest.h>

#include "launcher/host/probe_host.h"
#include "launcher/model/host_facts.h"
#include "launcher/model/job_config.h"
#include "launcher/model/plan.h"
#include "launcher/model/program.h"
#include "launcher/plan/make_plan.h"
#include "runtime/base/env_contract.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

Member member(const char* name, std::vector<std::uint16_t> trainers, int first_trainer,
              std::vector<std::uint16_t> servers = {}, int first_server = 0) {
  Member made;
  made.node = std::string(32, name[1]);
  made.name = name;
  made.offer.host = std::string("10.0.0.") + name[1];
  made.offer.trainers = std::move(trainers);
  made.offer.servers = std::move(servers);
  made.offer.rendezvous = 9000;
  made.first_trainer = first_trainer;
  made.first_server = first_server;
  return made;
}

/// One, three and two trainers.
World uneven() {
  World world;
  world.generation = 4;
  world.attempt = 2;
  world.run = std::string(32, 'a');
  world.members = {member("h1", {8001}, 0), member("h2", {8001, 8002, 8003}, 1),
                   member("h3", {8001, 8002}, 4)};
  return world;
}

HostFacts facts_of(const World& world, std::size_t node_rank) {
  HostFacts facts;
  facts.pod_name = "abcdef";
  facts.working_directory = "/jobs";
  facts.base_path = "/usr/bin";
  const PodOffer& offer = world.members[node_rank].offer;
  std::vector<Endpoint> trainers, servers;
  for (const std::uint16_t port : offer.trainers) trainers.push_back({offer.host, port});
  for (const std::uint16_t port : offer.servers) servers.push_back({offer.host, port});
  facts.trainers = trainers;
  facts.servers = servers;
  facts.rendezvous = {offer.host, offer.rendezvous};
  return facts;
}

Plan plan_of(const World& world, std::size_t node_rank, Mode mode) {
  JobConfig config;
  config.mode = mode;
  config.job_id = "ctr";
  config.log_dir = "log";
  config.with_gloo = "1";
  config.nproc_per_node = static_cast<int>(world.members[node_rank].offer.trainers.size());
  return make_plan(config, Program{"/bin/true", {"/bin/true"}, ""}, facts_of(world, node_rank),
                   WorldPlace{world, node_rank});
}

}  // namespace

TEST_CASE("ranks over uneven hosts are prefix sums, and everybody knows everybody's endpoint") {
  const World world = uneven();
  CHECK(world.trainers() == 6);
  int rank = 0;
  for (std::size_t node = 0; node < world.members.size(); ++node) {
    const Plan plan = plan_of(world, node, Mode::collective);
    REQUIRE(plan.processes.size() == world.members[node].offer.trainers.size());
    for (std::size_t i = 0; i < plan.processes.size(); ++i) {
      const Environ& environment = plan.processes[i].environment;
      CHECK(*environment.find("RANK") == std::to_string(rank));
      CHECK(*environment.find("LOCAL_RANK") == std::to_string(i));
      CHECK(*environment.find("WORLD_SIZE") == "6");
      CHECK(*environment.find("LOCAL_WORLD_SIZE") == std::to_string(plan.processes.size()));
      CHECK(*environment.find("GROUP_RANK") == std::to_string(node));
      CHECK(*environment.find("PADDLE_NNODES") == "3");
      CHECK(*environment.find("MASTER_ADDR") == "10.0.0.1");
      CHECK(*environment.find("MASTER_PORT") == "9000");
      CHECK(*environment.find("PADDLE_TRAINER_ENDPOINTS") ==
            "10.0.0.1:8001,10.0.0.2:8001,10.0.0.2:8002,10.0.0.2:8003,10.0.0.3:8001,10.0.0.3:8002");
      CHECK(*environment.find("FLEETRUN_EPOCH") == "4");
      CHECK(*environment.find("FLEETRUN_NODE_RANK") == std::to_string(node));
      CHECK(*environment.find("FLEETRUN_WORLD_HASH") == world.hash());
      CHECK(identity_from(environment) == plan.processes[i].identity);
      // The port of the store is held on the first host alone.
      CHECK(plan.processes[i].ports.size() == (rank == 0 ? 2 : 1));
      ++rank;
    }
  }
}

TEST_CASE("what Gloo and NCCL open is kept on the interface of this host's address") {
  CHECK(interface_of("127.0.0.1") == "lo");
  CHECK(interface_of("192.0.2.254").empty());
  HostFacts facts = facts_of(uneven(), 0);
  facts.socket_interfaces = {"GLOO_SOCKET_IFNAME=eth1", "NCCL_SOCKET_IFNAME==eth1"};
  JobConfig config;
  config.log_dir = "log";
  config.nproc_per_node = 1;
  const Plan plan =
      make_plan(config, Program{"/bin/true", {"/bin/true"}, ""}, facts, WorldPlace{uneven(), 0});
  CHECK(*plan.processes[0].environment.find("GLOO_SOCKET_IFNAME") == "eth1");
  CHECK(*plan.processes[0].environment.find("NCCL_SOCKET_IFNAME") == "=eth1");
}

TEST_CASE("servers on one host and trainers on others") {
  World world;
  world.generation = 1;
  world.run = std::string(32, 'b');
  world.members = {member("h1", {8001}, 0), member("h2", {}, 1, {7001, 7002}, 0), member("h3", {8001}, 1)};
  CHECK(world.rendezvous() == Endpoint{"10.0.0.2", 9000});  // server 0 serves Gloo's store

  const Plan servers = plan_of(world, 1, Mode::ps);
  REQUIRE(servers.processes.size() == 2);
  CHECK(servers.processes[1].identity.rank == 1);
  CHECK(servers.processes[0].ports.size() == 2);
  const Plan trainer = plan_of(world, 2, Mode::ps);
  REQUIRE(trainer.processes.size() == 1);
  CHECK(trainer.processes[0].name == "trainer 1");
  CHECK(*trainer.processes[0].environment.find("PADDLE_PSERVERS_IP_PORT_LIST") ==
        "10.0.0.2:7001,10.0.0.2:7002");
  CHECK(*trainer.processes[0].environment.find("PADDLE_GLOO_HTTP_ENDPOINT") == "10.0.0.2:9000");
}

TEST_CASE("a free rank has a place in the list of endpoints") {
  World world = uneven();
  world.members.erase(world.members.begin() + 1);
  const std::vector<Endpoint> endpoints = world.trainer_endpoints();
  REQUIRE(endpoints.size() == 6);
  CHECK(endpoints[1] == Endpoint{"0.0.0.0", 2});
  CHECK(endpoints[4] == Endpoint{"10.0.0.3", 8001});
  CHECK(world.trainers() == 3);
}

TEST_CASE("the hash of a world is over everything in it") {
  const World world = uneven();
  CHECK(world.hash() == uneven().hash());
  CHECK(world.hash().size() == 16);
  const auto changed = [&](auto change) {
    World other = uneven();
    change(other);
    return other.hash() != world.hash();
  };
  CHECK(changed([](World& w) { ++w.generation; }));
  CHECK(changed([](World& w) { ++w.attempt; }));
  CHECK(changed([](World& w) { w.run[3] = 'x'; }));
  CHECK(changed([](World& w) { std::swap(w.members[0], w.members[1]); }));
  CHECK(changed([](World& w) { w.members[1].node[0] = 'x'; }));
  CHECK(changed([](World& w) { w.members[1].name = "h9"; }));
  CHECK(changed([](World& w) { w.members[1].successor.port = 1; }));
  CHECK(changed([](World& w) { w.members[1].offer.trainers[2] = 1; }));
  CHECK(changed([](World& w) { w.members[2].first_trainer = 5; }));
}

TEST_CASE("members are found by their node") {
  CHECK(uneven().rank_of(std::string(32, '2')) == 1);
  CHECK(uneven().rank_of("somebody") == std::nullopt);
}
