#include "launcher/plan/attempt_overlay.h"

#include <doctest/doctest.h>

#include "launcher/plan/make_plan.h"
#include "tests/support/job_plan.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

const RunValues kRun = {"12", "/run/abcdef.secret", "/run"};

}  // namespace

TEST_CASE("the trainers of a collective job are told their attempt, as torch knows it too, and the secret") {
  Plan plan = tests::job_plan(1);
  plan.has_secret = true;
  CHECK(attempt_overlay(plan, plan.processes[0], kRun, {2, 2}) ==
        Environ{{"FLEETRUN_ATTEMPT", "2"},
                {"FLEETRUN_FAILED_BATCH", "/nowhere/log/abcdef/batch.trainer.0"},
                {"FLEETRUN_SECRET_FILE", "/run/abcdef.secret"},
                {"TORCHELASTIC_RESTART_COUNT", "2"}});
}

TEST_CASE("servers and trainers of one group are told the same run, and servers where their figures go") {
  const Plan plan = tests::job_plan(1, 1);
  const Environ server = attempt_overlay(plan, plan.processes[0], kRun, {3, 1});
  CHECK(server == Environ{{"FLEETRUN_ATTEMPT", "3"},
                          {"FLEETRUN_PS_RUN", "12-1"},
                          {"FLEETRUN_SERVER_FIGURES", "/run/abcdef.server.0.figures"}});
  CHECK(attempt_overlay(plan, plan.processes[1], kRun, {1, 1, 1}) ==
        Environ{{"FLEETRUN_ATTEMPT", "1"},
                {"FLEETRUN_FAILED_BATCH", "/nowhere/log/abcdef/batch.trainer.0"},
                {"FLEETRUN_PS_RUN", "12-1"}});
  CHECK(attempt_overlay(plan, plan.processes[0], kRun, {3, 1, 0}).value_or("FLEETRUN_PS_SERVED", "") ==
        "12-0");
}

TEST_CASE("where there is no place for a secret or for figures, nobody is told one") {
  Plan plan = tests::job_plan(0, 1);
  plan.has_secret = true;
  CHECK(attempt_overlay(plan, plan.processes[0], RunValues{"12", "", ""}, {}) ==
        Environ{{"FLEETRUN_ATTEMPT", "0"}, {"FLEETRUN_PS_RUN", "12-0"}});
}

TEST_CASE("a plan that is read says which values its start decides, and they are not for others to give") {
  Plan plan = tests::job_plan(0, 1);
  plan.has_secret = true;
  plan.processes[0].environment.set("A", "b");
  plan.processes[0].descriptors = {{"FLEETRUN_READY_FD", 9}};
  const Plan shown = as_first_started(plan);
  const ProcessSpec& process = shown.processes[0];
  for (const char* name : {"FLEETRUN_PS_RUN", "FLEETRUN_SECRET_FILE", "FLEETRUN_SERVER_FIGURES"}) {
    CHECK(process.environment.value_or(name, "") == kKnownAtStart);
    CHECK_FALSE(is_given_by_anybody(process, name));
  }
  CHECK_FALSE(process.environment.has("FLEETRUN_EPOCH"));  // a job on this host alone
  CHECK(is_given_by_anybody(process, "A"));
  CHECK_FALSE(is_given_by_anybody(process, "FLEETRUN_READY_FD"));
}

TEST_CASE("descriptors have numbers of their own, which the environment names") {
  HostFacts facts;
  facts.trainers = {{"127.0.0.1", 8000}};
  JobConfig config;
  config.hang.timeout = std::chrono::seconds(1);
  const auto descriptors = [&] {
    const Plan plan = make_plan(config, Program{"/bin/true", {"true"}, ""}, facts);
    for (const NamedDescriptor& descriptor : plan.processes[0].descriptors)
      CHECK(plan.processes[0].environment.value_or(descriptor.variable, "") ==
            std::to_string(descriptor.number));
    return plan.processes[0].descriptors;
  };
  CHECK(descriptors() == std::vector<NamedDescriptor>{{"FLEETRUN_HEARTBEAT_FD", 8}});
  config.rendezvous.kind = Rendezvous::Kind::master;
  CHECK(descriptors() ==
        std::vector<NamedDescriptor>{{"FLEETRUN_WORLD_FD", 9}, {"FLEETRUN_HEARTBEAT_FD", 10}});
}
