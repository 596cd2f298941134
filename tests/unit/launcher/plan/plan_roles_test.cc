#include "launcher/plan/plan_roles.h"

#include <doctest/doctest.h>
#include <signal.h>

#include "launcher/config/job_file_roles.h"
#include "launcher/config/make_job_config.h"
#include "launcher/config/read_job_file.h"
#include "launcher/host/find_devices.h"
#include "launcher/plan/make_plan.h"
#include "runtime/base/env_contract.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace std::chrono_literals;

namespace {

/// A job as fleetrun would come to it: options, the file behind them, the configuration.
struct Spec {
  Options options;
  JobConfig config;

  explicit Spec(const std::string& toml, std::map<std::string, std::string> flags = {}) {
    options.script = "job.toml";
    for (const auto& [key, value] : flags) {
      options.values[key] = value;
      options.spelled[key] = "--" + key;
    }
    apply_job_file(parse_job_file(toml, "job.toml"), options);
    config = make_job_config(options, {});
  }

  HostFacts facts() const {
    HostFacts result;
    result.pod_name = "abcdef";
    result.working_directory = "/jobs";
    std::uint16_t port = 7000;
    const auto endpoints = [&](int count) {
      std::vector<Endpoint> list;
      for (int i = 0; i < count; ++i) list.push_back({"127.0.0.1", port++});
      return list;
    };
    result.servers = endpoints(config.mode == Mode::ps ? config.server_num.value_or(1) : 0);
    const auto trainers = config.mode == Mode::ps ? config.trainer_num : config.nproc_per_node;
    result.trainers = endpoints(trainers.value_or(0));
    result.rendezvous = {"127.0.0.1", 9000};
    for (const JobFileRole& role : config.file->roles) {
      if (has_endpoints(role)) result.endpoints[role.name] = endpoints(count_of(role));
    }
    return result;
  }

  Plan plan() const { return plan(facts()); }
  Plan plan(const HostFacts& facts) const {
    std::vector<Program> programs;
    for (const JobFileRole& role : config.file->roles)
      programs.push_back({"/bin/" + role.name, {role.name}, ""});
    return make_plan(config, programs, facts);
  }
};

std::string role(const std::string& name, const std::string& more = "") {
  return "[[roles]]\nname = '" + name + "'\nscript = '" + name + ".py'\n" + more + "\n";
}

const std::string kTriple =
    role("watcher", "after = ['worker']\nready = {port = true}") +
    role("worker", "kind = 'trainer'\ncount = 2\nstop_signal = 'INT'\ngrace = 3") +
    role("ps", "kind = 'server'\nenvironment = {A = 'b', OMP_NUM_THREADS = 7}\ncwd = 'sub'");

Error error_of(const std::string& toml, std::map<std::string, std::string> flags = {}) {
  try {
    Spec(toml, std::move(flags)).plan();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::usage, "no error");
}

}  // namespace

TEST_CASE("roles are planned in the order in which they can start") {
  const Plan plan = Spec(kTriple).plan();
  REQUIRE(plan.roles.size() == 3);
  CHECK(plan.mode == Mode::ps);
  CHECK(plan.roles[0].name == "ps");
  CHECK(plan.roles[0].serves);
  CHECK(plan.roles[0].ready.kind == Readiness::Kind::port);
  CHECK(plan.roles[0].restart == RestartScope::process);
  CHECK(plan.roles[1].name == "worker");
  CHECK(plan.roles[1].after == std::vector<std::size_t>{0});  // without being told
  CHECK(plan.roles[1].stop_signal == SIGINT);
  CHECK(plan.roles[1].grace == 3s);
  CHECK(plan.roles[2].after == std::vector<std::size_t>{1});
  CHECK(plan.roles[2].restart == RestartScope::group);
  CHECK_FALSE(plan.roles[2].serves);
  REQUIRE(plan.processes.size() == 4);
  for (std::size_t i = 1; i < 4; ++i) CHECK(plan.processes[i - 1].role <= plan.processes[i].role);
}

TEST_CASE(
    "servers and trainers of a file get Paddle's variables, others FLEETRUN_ ones, each its own program") {
  const Plan plan = Spec(kTriple).plan();
  const ProcessSpec &server = plan.processes[0], &trainer = plan.processes[2], &watcher = plan.processes[3];
  CHECK(*server.environment.find("TRAINING_ROLE") == "PSERVER");
  CHECK(*server.environment.find("FLEETRUN_ROLE") == "ps");
  CHECK(*server.environment.find("A") == "b");
  CHECK(*server.environment.find("OMP_NUM_THREADS") == "7");
  CHECK(server.cwd == "/jobs/sub");
  CHECK(server.name == "ps 0");
  CHECK(server.log_name == "serverlog.0");
  CHECK(server.program == "/bin/ps");
  CHECK(*trainer.environment.find("PADDLE_TRAINER_ID") == "1");
  CHECK(*trainer.environment.find("FLEETRUN_ROLE") == "worker");
  CHECK(trainer.log_name == "workerlog.1");
  CHECK(trainer.cwd == "/jobs");
  CHECK(watcher.name == "watcher 0");
  CHECK(watcher.program == "/bin/watcher");
  CHECK(watcher.log_name == "watcherlog.0");
  CHECK(watcher.log_alias == "default.abcdef.watcher.0.log");
  CHECK(*watcher.environment.find("FLEETRUN_ENDPOINTS") == to_string(watcher.ports));
  CHECK_FALSE(watcher.environment.has("PADDLE_TRAINER_ID"));
  for (const ProcessSpec& process : plan.processes)
    CHECK(role_name(identity_from(process.environment)) == role_name(process.identity));
}

TEST_CASE("trainers without servers are a collective job, and plain roles alone are neither") {
  const Plan collective = Spec(role("trainer", "kind = 'trainer'\ncount = 2")).plan();
  CHECK(collective.mode == Mode::collective);
  CHECK(*collective.processes[1].environment.find("LOCAL_RANK") == "1");
  const Plan own = Spec(role("a", "count = 2") + role("b")).plan();
  CHECK(own.mode == Mode::own);
  CHECK(own.processes[1].name == "a 1");
  CHECK(*own.processes[1].environment.find("FLEETRUN_SIZE") == "2");
  CHECK(own.processes[2].ports.empty());
}

TEST_CASE("devices are those of the role, shown by the variable where no flag of Paddle's tells") {
  Spec trainers(role("trainer", "kind = 'trainer'\ndevices = [1, 0]"));
  HostFacts facts = trainers.facts();
  facts.devices = visible_devices({{"CUDA_VISIBLE_DEVICES", "0,1,2"}}, {});
  Plan plan = trainers.plan(facts);
  REQUIRE(plan.processes.size() == 2);
  CHECK(*plan.processes[0].environment.find("FLAGS_selected_gpus") == "0");
  CHECK(*plan.processes[0].environment.find("CUDA_VISIBLE_DEVICES") == "1,0");

  Spec plain(role("a", "devices = [2, 1]"));
  plan = plain.plan(facts);
  REQUIRE(plan.processes.size() == 2);
  CHECK(*plan.processes[0].environment.find("CUDA_VISIBLE_DEVICES") == "2");
  CHECK(*plan.processes[1].environment.find("CUDA_VISIBLE_DEVICES") == "1");
  plan = Spec(role("a", "devices = [2, 1]\ncount = 1")).plan(facts);
  CHECK(*plan.processes[0].environment.find("CUDA_VISIBLE_DEVICES") == "2,1");
}

TEST_CASE("flags win over the file") {
  const std::string file = "max_restart = 2\ngrace = 9\n" + role("a", "grace = 3") + role("b");
  CHECK(Spec(file).plan().roles[0].grace == 3s);
  CHECK(Spec(file).plan().roles[1].grace == 9s);
  CHECK(Spec(file).config.max_restart == 2);
  const Spec flags(file, {{"grace", "1"}, {"max_restart", "5"}});
  CHECK(flags.plan().roles[0].grace == 1s);
  CHECK(flags.config.max_restart == 5);
  CHECK(Spec(file, {{"grace", "b=4"}}).plan().roles[0].grace == 3s);
  CHECK(Spec(file, {{"restart", "a=process"}}).plan().roles[0].restart == RestartScope::process);
  CHECK(std::string(error_of(role("a"), {{"trainer_num", "2"}}).what()) ==
        "--trainer_num has no place beside a job file: its roles say that");
}

TEST_CASE("a wrong value of the file is refused by its place") {
  const Error error = error_of("max_restart = 'x'\n" + role("a"));
  CHECK(std::string(error.what()).starts_with("max_restart (job.toml:1) is 'x'"));
}

TEST_CASE("roles that cannot be are refused") {
  Error error = error_of(role("a", "after = ['b']") + role("b", "after = ['a']") + role("c"));
  CHECK(std::string(error.what()) == "roles wait for each other: a, b");
  error = error_of(role("trainer", "kind = 'trainer'") + role("b", "after = ['trianer']"));
  CHECK(std::string(error.what()) == "job.toml:5: role 'b' comes after 'trianer', which is not a role");
  CHECK(error.hint() == "did you mean trainer?");
  error = error_of(role("a", "kind = 'trainer'") + role("b", "kind = 'trainer'"));
  CHECK(std::string(error.what()) ==
        "job.toml:5: roles 'a' and 'b' are both of one kind, whose processes are one world");
  CHECK(std::string(error_of(role("a", "serves = true")).what()) ==
        "every role serves, so that the job would end at once");
  CHECK(std::string(error_of(role("a", "kind = 'server'")).what()) ==
        "job.toml:1: role 'a' has no trainers to serve: there is no role of kind trainer");
  Options options;
  options.script = "job.toml";
  options.script_args = {"x"};
  CHECK_THROWS_WITH_AS(apply_job_file(parse_job_file(role("a"), "job.toml"), options),
                       "there are arguments after the job file: x", Error);
}
