#include "launcher/plan/plan_torchrun.h"

#include <doctest/doctest.h>

#include "launcher/plan/attempt_overlay.h"

namespace fleetrun::launcher {
namespace {

using To = OutputPlan::To;

Identity identity(int local_rank) {
  Identity id;
  id.rank = 8 + local_rank;
  id.local_rank = local_rank;
  id.local_size = 2;
  id.torch.role_name = "worker";
  return id;
}

TorchrunSettings settings() {
  TorchrunSettings torchrun;
  torchrun.prefix = "[${role_name}${local_rank}]:";
  torchrun.directory = "/logs/run_x";
  return torchrun;
}

std::string prefix(const std::string& text) {
  TorchrunSettings torchrun = settings();
  torchrun.prefix = text;
  return plan_output(torchrun, identity(1), "node7").prefix;
}

Plan plan_of(const TorchrunSettings& torchrun, bool has_threads = false) {
  JobConfig config;
  config.torchrun = torchrun;
  HostFacts facts;
  facts.has_omp_num_threads = has_threads;
  Plan plan;
  for (const int rank : {0, 1}) {
    ProcessSpec& process = plan.processes.emplace_back();
    process.identity = identity(rank);
    process.argv = {"python", "train.py", "--local-rank=${local_rank}"};
    process.environment.set("OMP_NUM_THREADS", "16");
  }
  follow_torchrun(config, facts, plan);
  return plan;
}

}  // namespace

TEST_CASE("output goes to the terminal, or to files where it is redirected or teed, which alone is shown") {
  TorchrunSettings torchrun = settings();
  CHECK(plan_output(torchrun, identity(0), "h").out == To::terminal);
  torchrun.redirects.all = {false, true};
  torchrun.tee.ranks[1] = {true, false};
  const OutputPlan first = plan_output(torchrun, identity(0), "h"),
                   second = plan_output(torchrun, identity(1), "h");
  CHECK(first.out == To::terminal);
  CHECK(first.err == To::file);
  CHECK(first.shown == Streams{false, false});
  CHECK(second.out == To::file);
  CHECK(second.shown == Streams{true, false});
  CHECK(second.place(3, 1) == "/logs/run_x/attempt_3/1");
}

TEST_CASE("ranks that are filtered out write to their files alone, or nowhere") {
  TorchrunSettings torchrun = settings();
  torchrun.shown = {1};
  torchrun.tee.all = {true, false};
  const OutputPlan silent = plan_output(torchrun, identity(0), "h");
  CHECK(silent.out == To::file);
  CHECK(silent.err == To::nowhere);
  CHECK(silent.shown == Streams{false, false});
  torchrun.directory.clear();
  CHECK(plan_output(torchrun, identity(1), "h").out == To::nowhere);
}

TEST_CASE("prefixes are templates as Python's, and names that nobody knows stay") {
  CHECK(prefix("[${role_name}${local_rank}]:") == "[worker1]:");
  CHECK(prefix("$hostname/$rank ") == "node7/9 ");
  CHECK(prefix("$$1 ${nobody} $ ${rank") == "$1 ${nobody} $ ${rank");
}

TEST_CASE("a process has its local rank in its arguments, one thread, and an error file of its attempt") {
  const Plan plan = plan_of(settings());
  CHECK(plan.processes[1].argv.back() == "--local-rank=1");
  CHECK(*plan.processes[1].environment.find("OMP_NUM_THREADS") == "1");
  const Environ overlay = attempt_overlay(plan, plan.processes[1], RunValues{}, {2, 2});
  CHECK(*overlay.find("TORCHELASTIC_ERROR_FILE") == "/logs/run_x/attempt_2/1/error.json");
  CHECK(*plan_of(settings(), true).processes[1].environment.find("OMP_NUM_THREADS") == "16");
}

TEST_CASE("virtual local ranks see their device alone") {
  TorchrunSettings torchrun = settings();
  torchrun.virtual_local_rank = true;
  CHECK(*plan_of(torchrun).processes[1].environment.find("CUDA_VISIBLE_DEVICES") == "1");
  torchrun.visible_devices = "4,6";
  const Plan plan = plan_of(torchrun);
  CHECK(*plan.processes[1].environment.find("CUDA_VISIBLE_DEVICES") == "6");
  CHECK(*plan.processes[1].environment.find("LOCAL_RANK") == "0");
}

}  // namespace fleetrun::launcher
