#include "launcher/remote/controller_plan.h"

#include <doctest/doctest.h>

#include "launcher/config/make_job_config.h"
#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::launcher::remote;

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

ControllerPlace place() {
  ControllerPlace place;
  place.directory = "/work";
  place.program = "/opt/fleetrun";
  place.own = {{"localhost", "me", "me.lan"}, {"127.0.0.1", "10.0.0.1", "fe80::1%eth0"}};
  return place;
}

ControllerPlan plan_of(Values values, const Environ& environ = {}) {
  Options options;
  options.values = std::move(values);
  for (const auto& [key, value] : options.values) options.spelled.emplace(key, "--" + key);
  options.script = "train.py";
  options.script_args = {"--lr", "$(id)"};
  return make_controller_plan(options, make_job_config(options, environ), environ, place());
}

std::string refusal(Values values, const Environ& environ = {}) {
  try {
    plan_of(std::move(values), environ);
  } catch (const Error& error) {
    return std::string(error.what()) + " / " + error.hint();
  }
  return "not refused";
}

bool has(const std::string& text, std::string_view part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text, " lacks ", std::string(part));
  return found;
}

}  // namespace

TEST_CASE("ranks are prefix sums over uneven slots") {
  const ControllerPlan plan = plan_of({{"hosts", "h1,u@h2:3,h3:2"}, {"nproc_per_node", "1"}});
  REQUIRE(plan.hosts.size() == 3);
  CHECK(plan.nodes == NodeCount{3, 3, 1});
  CHECK(plan.hosts[0].first_trainer == 0);
  CHECK(plan.hosts[1].first_trainer == 1);
  CHECK(plan.hosts[2].first_trainer == 4);
  CHECK(plan.hosts[2].order.node_rank == 2);
  CHECK(plan.hosts[1].order.trainers == 3);
  CHECK(plan.hosts[1].order.node_name == "h2");
  CHECK(!plan.hosts[0].order.trainers);
  CHECK(plan.hosts[0].order.values.at("log_dir") == "log/h1");
  CHECK(plan.hosts[0].order.cwd == "/work");
  CHECK(plan.program == "/opt/fleetrun");
}

TEST_CASE("what is not known before a host says it is left open") {
  const ControllerPlan plan = plan_of({{"hosts", "h1:2,h2,h3:1"}});
  CHECK(plan.hosts[1].first_trainer == 2);
  CHECK(!plan.hosts[1].trainers);
  CHECK(!plan.hosts[2].first_trainer);
}

TEST_CASE("a list that names servers makes the job one of servers, and its other hosts train") {
  const ControllerPlan plan = plan_of({{"hosts", "h1:servers=2,h2:trainers=2,h3"}});
  CHECK(plan.mode == Mode::ps);
  CHECK(plan.hosts[0].servers == 2);
  CHECK(plan.hosts[0].trainers == 0);
  CHECK(plan.hosts[1].trainers == 2);
  CHECK(plan.hosts[2].servers == 0);
  CHECK(plan.hosts[2].trainers == 1);
  CHECK(plan.hosts[2].order.servers == 0);
  CHECK(plan.hosts[2].order.values.at("run_mode") == "ps");
  CHECK(plan.notes.empty());
  const ControllerPlan other = plan_of({{"hosts", "h1:servers=1,h2"}, {"run_mode", "collective"}});
  CHECK(other.mode == Mode::ps);
  REQUIRE(other.notes.size() == 1);
  CHECK(other.notes[0] == "run_mode is ps, not collective, because the list of hosts names servers");
}

TEST_CASE("a place to meet has no effect beside a list of hosts, and says so") {
  const ControllerPlan plan = plan_of({{"hosts", "h1,h2"}, {"master", "10.0.0.9:6768"}});
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0] == "--master has no effect: the hosts of a list meet at the one that starts them");
}

TEST_CASE("localhost, the host's own name and its address are one host") {
  const ControllerPlan plan = plan_of({{"hosts", "localhost,h2:3,ME:2,10.0.0.1"}});
  REQUIRE(plan.hosts.size() == 2);
  CHECK(plan.hosts[0].here);
  CHECK(plan.hosts[0].trainers == 4);
  CHECK(plan.hosts[1].first_trainer == 4);
  REQUIRE(plan.notes.size() == 2);
  CHECK(plan.notes[0] == "localhost and ME are this host: 3 trainers are counted here");
}

TEST_CASE("servers on one host and trainers on others") {
  const ControllerPlan plan =
      plan_of({{"hosts", "h1:servers=2,h2:trainers=2,h3"}, {"server_num", "1"}, {"trainer_num", "3"}});
  CHECK(plan.mode == Mode::ps);
  CHECK(plan.hosts[0].order.servers == 2);
  CHECK(plan.hosts[0].order.trainers == 0);
  CHECK(plan.hosts[1].order.servers == 0);
  CHECK(plan.hosts[2].first_server == 2);
  CHECK(plan.hosts[2].servers == 1);
  CHECK(plan.hosts[2].first_trainer == 2);
  CHECK(plan.hosts[2].trainers == 3);
}

TEST_CASE("only the first trainer of the first host that has one is shown, unless others are asked for") {
  const ControllerPlan plan =
      plan_of({{"hosts", "h1:servers=1,h2:trainers=2,h3:trainers=1"}, {"run_mode", "ps"}});
  CHECK(plan.raw);
  CHECK(plan.hosts[0].order.values.at("show") == "none");
  CHECK(plan.hosts[1].order.values.at("show") == "first");
  CHECK(plan.hosts[2].order.values.at("show") == "none");
  const ControllerPlan all = plan_of({{"hosts", "h1,h2"}, {"show", "all"}});
  CHECK(!all.raw);
  CHECK(all.hosts[1].order.values.at("show") == "all");
}

TEST_CASE("this machine is known by its names and addresses, and needs no ssh") {
  for (const char* name : {"ME.lan", "localhost", "10.0.0.1", "[fe80::1]", "127.0.0.9", "[::1]"})
    CHECK(plan_of({{"hosts", name}}).hosts[0].here);
  for (const char* name : {"10.0.0.2", "me2"}) CHECK_FALSE(plan_of({{"hosts", name}}).hosts[0].here);
}

TEST_CASE("a range of hosts makes some of them spares, and more than there are is refused") {
  const ControllerPlan plan = plan_of({{"hosts", "n[1-4]"}, {"nnodes", "2:3"}});
  CHECK(plan.elastic);
  CHECK(plan.nodes == NodeCount{2, 3, 1});
  CHECK(plan.hosts[0].order.node_rank == -1);
  CHECK(plan_of({{"hosts", "n[1-4]"}, {"nnodes", "2:4"}}).hosts[3].order.node_rank == 3);
  CHECK(
      has(refusal({{"hosts", "n[1-4]"}, {"nnodes", "5"}}), "--nnodes asks for 5 hosts, and the list has 4"));
}

TEST_CASE("variables, a directory and a program for the hosts") {
  const ControllerPlan plan =
      plan_of({{"hosts", "h1"}, {"export", "A,B=2"}, {"chdir", "/data"}, {"path", "fleetrun"}}, {{"A", "1"}});
  CHECK(plan.hosts[0].order.environment ==
        std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"B", "2"}});
  CHECK(plan.hosts[0].order.cwd == "/data");
  CHECK(plan.program == "fleetrun");
}

TEST_CASE("what does not go together with a list of hosts is refused") {
  CHECK(has(refusal({{"hosts", "h1"}, {"path", "a;b"}}), "a plain path is needed"));
  CHECK(has(refusal({{"hosts", "h1"}, {"detach", "True"}}), "--detach is given"));
  CHECK(has(refusal({{"hosts", "h1"}, {"stdin", "1"}}), "--stdin is given"));
  CHECK(has(refusal({{"hosts", "h1"}, {"pty", "1"}}), "--pty is given"));
  CHECK(has(refusal({{"hosts", "h1"}, {"dry_run", "json"}}), "shown as text only"));
  CHECK(has(refusal({{"hosts", "h1"}, {"servers", "a:1"}, {"trainers", "a:2"}}), "write h1:servers=1"));
  CHECK(has(refusal({{"hosts", "h1"}, {"master", "etcd://e:2379"}}), "give one of them"));
  CHECK(has(refusal({{"hosts", "h1:servers=1"}, {"run_mode", "ps"}}), "no host of the list has a trainer"));
  CHECK(has(refusal({{"hosts", "h1:trainers=1"}, {"run_mode", "ps"}}), "no host of the list has a server"));
  CHECK(has(refusal({{"hosts", "h1:2"}, {"include", "h1:0"}, {"run_mode", "ps"}}),
            "devices are for collective jobs"));
  CHECK(has(refusal({{"hosts", "h1,h2"}, {"include", "h1"}, {"exclude", "h2"}}), "both given"));
  CHECK(has(refusal({{"hosts", "-oProxyCommand=x"}}), "begins with '-'"));
  CHECK(has(refusal({{"hosts", "h1"}, {"ssh", " "}}), "--ssh is empty"));
  CHECK(has(refusal({{"hosts", "h1"}, {"export", "A"}}), "A is not set here"));
}

TEST_CASE("a dry run shows every host's part, and names variables without their values") {
  const ControllerPlan plan = plan_of({{"hosts", "localhost:2,me@h2:1,[fe80::7]:port=2222:4"},
                                       {"export", "KEY=hidden"},
                                       {"ssh", "ssh -F x"}});
  const std::string text = to_text(plan);
  CHECK(has(text, "Job on 3 hosts, mode collective, logins at a time: 8"));
  CHECK(has(text, "program    train.py --lr '$(id)'"));
  CHECK(has(text, "directory  /work"));
  CHECK(has(text, "variables  KEY\n"));
  CHECK(text.find("hidden") == std::string::npos);
  CHECK(has(text, "host 0: localhost, this host\n  started by /opt/fleetrun agent --stdin, directly"));
  CHECK(has(text, "host 1: h2\n  started by ssh -F x -T "));
  CHECK(has(text, "-l me -- h2 /opt/fleetrun agent --stdin"));
  CHECK(has(text, "runs       1 trainer, rank 2"));
  CHECK(has(text, "host 2: [fe80::7]"));
  CHECK(has(text, "-p 2222"));
  CHECK(has(text, "4 trainers, ranks 3 to 6"));
  CHECK(has(text, "logs       log/h2"));
}

TEST_CASE("own addresses are found whatever their zone") {
  const OwnHost own = place().own;
  CHECK(own_address(own, "fe80::1%enp3s0") == "fe80::1%eth0");
  CHECK(own_address(own, "fe80:0:0::1") == "fe80::1%eth0");
  CHECK(!own_address(own, "10.0.0.2"));
  CHECK(is_own(own, "127.1.2.3"));
  CHECK(!is_own(own, "1270.0.0.1"));
}
