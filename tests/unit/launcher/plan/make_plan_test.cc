#include "launcher/plan/make_plan.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "launcher/host/find_devices.h"
#include "launcher/host/probe_host.h"
#include "launcher/plan/plan_json.h"
#include "launcher/plan/plan_spares.h"
#include "runtime/base/env_contract.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

std::vector<Endpoint> endpoints(int count, int first_port) {
  std::vector<Endpoint> list;
  for (int i = 0; i < count; ++i) list.push_back({"127.0.0.1", static_cast<std::uint16_t>(first_port + i)});
  return list;
}

HostFacts facts(int servers, int trainers) {
  HostFacts result;
  result.pod_name = "abcdef";
  result.working_directory = "/jobs";
  result.servers = endpoints(servers, 7000);
  result.trainers = endpoints(trainers, 8000);
  result.rendezvous = {"127.0.0.1", 9000};
  result.base_path = "/usr/bin";
  return result;
}

JobConfig config(Mode mode) {
  JobConfig result;
  result.mode = mode;
  result.job_id = "ctr";
  result.log_dir = "log";
  result.with_gloo = "1";
  result.auto_cluster = "0";
  return result;
}

Program program() {
  return {"/venv/bin/python3", {"/venv/bin/python3", "-u", "train.py"}, "/venv/bin/python3"};
}

}  // namespace

TEST_CASE("servers come first, with the documented log names and the ports that are held for them") {
  const Plan plan = make_plan(config(Mode::ps), program(), facts(1, 2));
  REQUIRE(plan.processes.size() == 3);
  CHECK(processes_of(plan, 0) == std::vector<std::size_t>{0});
  CHECK(processes_of(plan, 1) == std::vector<std::size_t>{1, 2});
  CHECK(plan.processes[0].log_name == "serverlog.0");
  CHECK(plan.processes[0].log_alias == "ctr.abcdef.ps.0.log");
  CHECK(plan.processes[2].log_name == "workerlog.1");
  CHECK(plan.processes[2].log_alias == "ctr.abcdef.trainer.1.log");
  CHECK(to_string(plan.processes[0].ports) == "127.0.0.1:7000,127.0.0.1:9000");
  CHECK(to_string(plan.processes[2].ports) == "127.0.0.1:8001");
  CHECK(plan.log_dir == "/jobs/log");
  CHECK(plan.processes[1].cwd == "/jobs");
}

TEST_CASE("a process of a plan reads its own identity back from its environment") {
  for (const Mode mode : {Mode::ps, Mode::collective, Mode::rpc}) {
    JobConfig wanted = config(mode);
    wanted.nproc_per_node = 3;
    for (const ProcessSpec& process : make_plan(wanted, program(), facts(2, 3)).processes)
      CHECK(identity_from(process.environment) == process.identity);
  }
}

TEST_CASE("the port of a server of ours is held as long as the job, and the server is told") {
  HostFacts host = facts(2, 1);
  CHECK_FALSE(make_plan(config(Mode::ps), program(), host).processes[0].environment.has("FLEETRUN_LISTEN"));
  host.own_servers = true;
  const Plan plan = make_plan(config(Mode::ps), program(), host);
  CHECK(to_string(plan.processes[1].own_ports) == "127.0.0.1:7001");
  CHECK(plan.processes[1].ports.empty());
  CHECK(*plan.processes[1].environment.find("FLEETRUN_LISTEN") == "127.0.0.1:7001");
  for (const std::string& name : plan.processes[1].unset) CHECK(name != "FLEETRUN_LISTEN");
  CHECK(to_string(plan.processes[0].ports) == "127.0.0.1:9000");
  CHECK(to_string(plan.processes[2].ports) == "127.0.0.1:8000");
}

TEST_CASE("a server's standby is another server, and servers are told of it") {
  JobConfig wanted = config(Mode::ps);
  wanted.ps_replicas = 1;
  wanted.max_restart = 3;
  const Plan plan = make_plan(wanted, program(), facts(2, 1));
  CHECK(*plan.processes[1].environment.find("FLEETRUN_PS_REPLICAS") == "1");
  CHECK(*plan.processes[2].environment.find("FLEETRUN_PS_REPLICAS") == "1");
  CHECK_FALSE(plan.processes[1].environment.has("FLEETRUN_PS_STANDBY"));
  CHECK(plan.notes ==
        std::vector<std::string>{
            "--ps_replicas=1: all servers are on one host, and their standbys are lost with it"});
  CHECK_THROWS_WITH_AS(make_plan(wanted, program(), facts(1, 1)),
                       "--ps_replicas=1 with 1 server: its standby is another server", Error);
  JobConfig moving = wanted;
  moving.server_num = 1;
  moving.most_servers = 2;
  HostFacts of_ours = facts(2, 1);
  of_ours.own_servers = true;
  const Plan begins_alone = make_plan(moving, program(), of_ours);
  CHECK(*begins_alone.processes[0].environment.find("FLEETRUN_PS_REPLICAS") == "1");
  CHECK(begins_alone.notes ==
        std::vector<std::string>{"--ps_replicas=1: one process serves all servers, and their standbys are "
                                 "lost with it until fleetrun ps resize has more"});
  JobConfig with_others = wanted;  // whose servers are known once they have met
  with_others.rendezvous.kind = Rendezvous::Kind::master;
  CHECK(make_plan(with_others, program(), facts(1, 1)).notes.empty());
  HostFacts may_take_over = facts(2, 1);
  may_take_over.own_servers = true;
  may_take_over.standbys = {{"h", 1}, {"h", 2}, {"h", 3}, {"h", 4}};
  const Plan taking = make_plan(with_others, program(), may_take_over);
  CHECK(*taking.processes[0].environment.find("FLEETRUN_PS_STANDBY") == "h:1,h:3");
  CHECK(*taking.processes[1].environment.find("FLEETRUN_PS_STANDBY") == "h:2,h:4");
  wanted.restart["server"] = RestartScope::group;
  CHECK_THROWS_WITH_AS(make_plan(wanted, program(), facts(2, 1)),
                       "--ps_replicas=1 for servers that are not started again alone", Error);
}

TEST_CASE("a program that imports fleetrun is known by the line") {
  CHECK(imports_fleetrun("import os\nimport fleetrun as paddle\n"));
  CHECK(imports_fleetrun("if True:\n    from fleetrun.distributed import fleet"));
  CHECK(imports_fleetrun("import fleetrun"));
  CHECK_FALSE(imports_fleetrun("import fleetrunner\n# import fleetrun\nimport paddle\n"));
  CHECK_FALSE(imports_fleetrun(""));
}

TEST_CASE("rank 0 of a collective job holds the master's port, and devices are spread") {
  JobConfig wanted = config(Mode::collective);
  HostFacts host = facts(0, 2);
  host.devices.tokens = {"3", "5"};
  const Plan plan = make_plan(wanted, program(), host);
  REQUIRE(plan.processes.size() == 2);
  CHECK(to_string(plan.processes[0].ports) == "127.0.0.1:8000,127.0.0.1:9000");
  CHECK(*plan.processes[1].environment.find("FLAGS_selected_gpus") == "1");
  CHECK(*plan.processes[1].environment.find("PADDLE_MASTER") == "127.0.0.1:9000");
  wanted.nproc_per_node = 1;
  CHECK(*make_plan(wanted, program(), facts(0, 1)).processes[0].environment.find("PADDLE_DISTRI_BACKEND") ==
        "gloo");
  host.trainers = {host.trainers.front()};
  CHECK(*make_plan(wanted, program(), host).processes[0].environment.find("FLAGS_selected_gpus") == "0,1");
}

TEST_CASE("MIG devices are shown one to a trainer, and XPUs have a flag of their own") {
  JobConfig wanted = config(Mode::collective);
  HostFacts host = facts(0, 2);
  host.devices.tokens = {"MIG-a", "MIG-b"};
  Environ environ = make_plan(wanted, program(), host).processes[1].environment;
  CHECK(*environ.find("CUDA_VISIBLE_DEVICES") == "MIG-b");
  CHECK(*environ.find("FLAGS_selected_gpus") == "0");
  host.devices = visible_devices({{"XPU_VISIBLE_DEVICES", "4,5"}}, {});
  environ = make_plan(wanted, program(), host).processes[1].environment;
  CHECK(*environ.find("FLAGS_selected_xpus") == "1");
  CHECK_FALSE(environ.has("FLAGS_selected_gpus"));
  CHECK_FALSE(environ.has("XPU_VISIBLE_DEVICES"));
}

TEST_CASE("the interpreter's directory leads PATH, behind the job's own python if there is one") {
  HostFacts host = facts(0, 1);
  CHECK(*make_plan(config(Mode::collective), program(), host).processes[0].environment.find("PATH") ==
        "/venv/bin:/usr/bin");
  host.python_directory = "/jobs/log/.python-abcdef";
  CHECK(*make_plan(config(Mode::collective), program(), host).processes[0].environment.find("PATH") ==
        "/jobs/log/.python-abcdef:/venv/bin:/usr/bin");
  const Program direct = {"/bin/true", {"true"}, ""};
  CHECK_FALSE(make_plan(config(Mode::collective), direct, host).processes[0].environment.has("PATH"));
}

TEST_CASE("thread counts of the user stay, and compat leads the module path") {
  HostFacts host = facts(0, 1);
  Environ environ = make_plan(config(Mode::collective), program(), host).processes[0].environment;
  CHECK(*environ.find("OMP_NUM_THREADS") == "1");
  CHECK(*environ.find("CPU_NUM") == "1");
  CHECK_FALSE(environ.has("PYTHONPATH"));
  host.has_omp_num_threads = true;
  host.compat_directory = "/site/fleetrun/_compat";
  host.base_python_path = "/mine";
  environ = make_plan(config(Mode::collective), program(), host).processes[0].environment;
  CHECK_FALSE(environ.has("OMP_NUM_THREADS"));
  CHECK(*environ.find("PYTHONPATH") == "/site/fleetrun/_compat:/mine");
  CHECK(*environ.find("FLEETRUN_COMPAT") == "paddle");
}

TEST_CASE("what a bad line does reaches the processes where it was asked for") {
  JobConfig wanted = config(Mode::ps);
  CHECK_FALSE(
      make_plan(wanted, program(), facts(1, 1)).processes.back().environment.has("FLEETRUN_BAD_LINE"));
  wanted.bad_line = "skip:5";
  CHECK(*make_plan(wanted, program(), facts(1, 1)).processes.back().environment.find("FLEETRUN_BAD_LINE") ==
        "skip:5");
}

TEST_CASE("what ranks compare reaches the processes where it was asked for") {
  JobConfig wanted = config(Mode::collective);
  CHECK_FALSE(
      make_plan(wanted, program(), facts(0, 2)).processes.back().environment.has("FLEETRUN_SENTINEL"));
  wanted.sentinel = "every";
  CHECK(*make_plan(wanted, program(), facts(0, 2)).processes.back().environment.find("FLEETRUN_SENTINEL") ==
        "every");
}

TEST_CASE("a process computes with its share of the cores, and CPU_NUM is never guessed") {
  HostFacts host = facts(1, 2);
  host.cpus.cores = 13;
  const Environ environ = make_plan(config(Mode::ps), program(), host).processes[0].environment;
  CHECK(*environ.find("OMP_NUM_THREADS") == "4");
  CHECK(*environ.find("CPU_NUM") == "1");
}

TEST_CASE("trainers may be as many as devices or CPUs, as torchrun counts them") {
  HostFacts host = facts(0, 4);
  host.cpus.allowed = {0, 1, 2};
  JobConfig wanted = config(Mode::collective);
  wanted.trainers_by = TrainersBy::automatic;
  CHECK(device_plan(wanted, host).trainers == 3);
  host.devices.tokens = {"0", "1"};
  CHECK(device_plan(wanted, host).trainers == 2);
  wanted.trainers_by = TrainersBy::cpu;
  CHECK(device_plan(wanted, host).trainers == 3);
  CHECK(device_plan(wanted, host).processes.empty());
  wanted.trainers_by = TrainersBy::gpu;
  CHECK(device_plan(wanted, host).trainers == 2);
  host.devices = visible_devices({}, {});
  CHECK_THROWS_WITH_AS(device_plan(wanted, host),
                       "--nproc_per_node=gpu, but this host has no devices, says /dev/nvidia*", Error);
}

TEST_CASE("processes are bound where the facts hold a topology, and the user is told what is odd") {
  HostFacts host = facts(1, 2);
  CHECK(make_plan(config(Mode::ps), program(), host).processes[0].cpus.empty());
  host.topology = Topology{{{{0}, 0}, {{1}, 1}}, {}};
  JobConfig wanted = config(Mode::ps);
  wanted.bind = Bind::core;
  const Plan plan = make_plan(wanted, program(), host);
  CHECK(plan.processes[1].cpus == std::vector<int>{1});
  CHECK(plan.processes[1].memory_nodes == std::vector<int>{1});
  CHECK(plan.notes == std::vector<std::string>{"--bind=core: 3 processes share 2 cores"});
}

TEST_CASE("processes that stand by are trainers without a rank") {
  JobConfig job = config(Mode::collective);
  job.nproc_per_node = 2;
  job.replaces_failed = true;
  job.spares = 2;
  const Plan plan = make_plan(job, program(), facts(0, 2));
  REQUIRE(plan.processes.size() == 4);
  REQUIRE(plan.roles.size() == 2);
  CHECK(plan.roles[1].name == "spare");
  CHECK(plan.roles[1].serves);
  CHECK(standby_role(plan.roles) == 1);
  CHECK(plan.roles[1].stands_by_for == 0);
  CHECK(plan.processes[3].name == "spare 1");
  CHECK(plan.processes[3].log_name == "sparelog.1");
  CHECK(plan.processes[3].ports.empty());
  CHECK(plan.processes[0].environment.has("FLEETRUN_MEMBER_FD"));
  CHECK(rank_environment(plan, 1).value_or("PADDLE_TRAINER_ID", "") == "1");
  CHECK(rank_environment(plan, 0).value_or("RANK", "") == "0");
  CHECK_FALSE(rank_environment(plan, 0).has("WORLD_SIZE"));
  const std::vector<std::string> standby = standby_environment(plan);
  CHECK(std::count(standby.begin(), standby.end(), "FLEETRUN_STANDBY=1") == 1);
  CHECK(std::count(standby.begin(), standby.end(), "RANK") == 1);
  CHECK(std::count(standby.begin(), standby.end(), "WORLD_SIZE") == 0);

  job.nproc_per_node = 1;
  CHECK_THROWS_WITH(make_plan(job, program(), facts(0, 1)),
                    doctest::Contains("a process in its place has nobody to get its state from"));
}

TEST_CASE("the same spec and the same facts give the same plan, another fact gives another") {
  const Plan plan = make_plan(config(Mode::ps), program(), facts(1, 2));
  CHECK(plan == make_plan(config(Mode::ps), program(), facts(1, 2)));
  CHECK_FALSE(plan == make_plan(config(Mode::ps), program(), facts(1, 3)));
  CHECK(to_json(plan).find("\"schema\": 1") != std::string::npos);
}
