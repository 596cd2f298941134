#include "launcher/schedulers/slurm_allocation.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

/// As sbatch -N2 sets it, on the first host.
Environ batch() {
  return {{"SLURM_JOB_ID", "1234"},
          {"SLURM_JOB_NODELIST", "n[1-2]"},
          {"SLURM_JOB_NUM_NODES", "2"},
          {"SLURM_NNODES", "2"},
          {"SLURM_TASKS_PER_NODE", "1(x2)"},
          {"SLURMD_NODENAME", "n1"},
          {"SLURM_NODEID", "0"},
          {"SLURM_PROCID", "0"}};
}

/// As srun -N2 --ntasks-per-node=1 sets it, on the second host.
Environ step() {
  Environ environ = batch();
  environ.set("SLURM_STEP_ID", "3");
  environ.set("SLURM_STEP_NODELIST", "n[1-2]");
  environ.set("SLURM_STEP_NUM_NODES", "2");
  environ.set("SLURM_STEP_TASKS_PER_NODE", "1(x2)");
  environ.set("SLURM_NODEID", "1");
  environ.set("SLURMD_NODENAME", "n2");
  return environ;
}

Environ with(Environ environ, std::string name, std::string value) {
  environ.set(std::move(name), std::move(value));
  return environ;
}

Environ without(Environ environ, std::string_view name) {
  environ.erase(name);
  return environ;
}

std::string refusal(const Environ& environ) {
  try {
    const auto allocation = slurm_allocation(environ);
    if (!allocation) return "no allocation";
    (void)slurm_part(*allocation);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("numbers of tasks are read as Slurm writes them") {
  using Counts = std::vector<int>;
  CHECK(parse_task_counts("2(x3),1", 10) == Counts{2, 2, 2, 1});
  CHECK(parse_task_counts("4", 1) == Counts{4});
  CHECK(parse_task_counts("1,2,3", 3) == Counts{1, 2, 3});
  CHECK(parse_task_counts("1(x65536)", 65'536)->size() == 65'536);
  for (const char* bad : {"", ",", "1,", "0", "-1", "2(x)", "2(x0)", "2(x-1)", "2(x3", "2x3", "(x3)", "a",
                          "2(x3)1", " 2", "1(x999999999999)", "99999999", "2(x3)(x4)", "2(x2),1(x9)"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_task_counts(bad, 10));
  }
}

TEST_CASE("without Slurm's variables, or with half of them, there is no allocation") {
  CHECK_FALSE(slurm_allocation({}));
  CHECK_FALSE(slurm_allocation({{"SLURM_JOB_ID", "1"}}));
  CHECK_FALSE(slurm_allocation({{"SLURM_JOB_NODELIST", "n1"}}));
  CHECK_FALSE(slurm_allocation({{"SLURM_CONF", "/etc/slurm.conf"}, {"SLURM_CLUSTER_NAME", "c"}}));
}

TEST_CASE("a batch script is a head, with one agent per host") {
  const auto allocation = slurm_allocation(batch());
  REQUIRE(allocation);
  CHECK(allocation->job == "1234");
  CHECK(allocation->hosts == std::vector<std::string>{"n1", "n2"});
  CHECK(allocation->tasks.empty());  // nobody has asked for a number
  CHECK_FALSE(allocation->step);
  CHECK(slurm_part(*allocation) == SlurmPart::controller);
  CHECK_FALSE(slurm_hosts(*allocation)[0].slots);
}

TEST_CASE("older names of the variables do too") {
  CHECK(slurm_part(*slurm_allocation(
            {{"SLURM_JOBID", "7"}, {"SLURM_NODELIST", "a,b[08-10]"}, {"SLURM_NNODES", "4"}})) ==
        SlurmPart::controller);
  CHECK(slurm_allocation({{"SLURM_JOBID", "7"}, {"SLURM_NODELIST", "a,b[08-10]"}})->hosts ==
        std::vector<std::string>{"a", "b08", "b09", "b10"});
}

TEST_CASE(
    "on its only host a batch script is a launch like any other, and a shell on a login host is a head") {
  Environ environ = {{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n1"}, {"SLURMD_NODENAME", "n1"}};
  CHECK(slurm_part(*slurm_allocation(environ)) == SlurmPart::alone);
  CHECK(slurm_part(*slurm_allocation(without(environ, "SLURMD_NODENAME"))) == SlurmPart::controller);
  CHECK(slurm_part(*slurm_allocation(with(environ, "SLURMD_NODENAME", "n2"))) == SlurmPart::controller);
}

TEST_CASE("launchers that srun started, one per host, are nodes") {
  const auto allocation = slurm_allocation(step());
  REQUIRE(allocation);
  CHECK(allocation->step == SlurmStep{3, 1});
  CHECK(slurm_part(*allocation) == SlurmPart::node);
  const std::uint16_t port = slurm_rendezvous_port(*allocation);
  CHECK(port >= 20'000);
  CHECK(port < 30'000);
  CHECK(port == slurm_rendezvous_port(*slurm_allocation(with(step(), "SLURM_NODEID", "0"))));
  CHECK(port != slurm_rendezvous_port(*slurm_allocation(with(step(), "SLURM_STEP_ID", "4"))));
}

TEST_CASE("a step of one host is alone, whatever the allocation has") {
  Environ environ = step();
  environ.set("SLURM_STEP_NODELIST", "n2");
  environ.set("SLURM_STEP_NUM_NODES", "1");
  environ.set("SLURM_STEP_TASKS_PER_NODE", "1");
  environ.set("SLURM_NODEID", "0");
  CHECK(slurm_part(*slurm_allocation(environ)) == SlurmPart::alone);
  CHECK(slurm_part(*slurm_allocation(without(environ, "SLURM_NODEID"))) == SlurmPart::alone);
}

TEST_CASE("the shell of an interactive step is a head, like the batch script") {
  for (const char* special : {"4294967290", "4294967291"}) {
    const Environ environ = with(with(batch(), "SLURM_STEP_ID", special), "SLURM_STEP_NODELIST", "n1");
    CHECK(slurm_part(*slurm_allocation(environ)) == SlurmPart::controller);
  }
}

TEST_CASE("several launchers of one step on a host are refused by all of them") {
  CHECK(refusal(with(step(), "SLURM_STEP_TASKS_PER_NODE", "2(x2)")) ==
        "srun started 2 launchers on n1, and one per host is needed");
  CHECK(refusal(with(step(), "SLURM_STEP_TASKS_PER_NODE", "1,4")) ==
        "srun started 4 launchers on n2, and one per host is needed");
  try {
    (void)slurm_part(*slurm_allocation(with(step(), "SLURM_STEP_TASKS_PER_NODE", "2(x2)")));
  } catch (const Error& error) {
    CHECK(error.hint().starts_with("use srun --ntasks-per-node=1"));
  }
}

TEST_CASE("tasks are trainers where somebody asked for tasks; devices count where there are some") {
  using Slots = std::vector<std::optional<int>>;
  const auto slots = [](const Environ& environ) {
    Slots result;
    for (const RemoteHost& host : slurm_hosts(*slurm_allocation(environ))) result.push_back(host.slots);
    return result;
  };
  const Environ uneven = with(batch(), "SLURM_TASKS_PER_NODE", "3,1");
  CHECK(slots(uneven) == Slots{std::nullopt, std::nullopt});
  CHECK(slots(with(uneven, "SLURM_NTASKS", "4")) == Slots{3, 1});
  CHECK(slots(with(batch(), "SLURM_NTASKS_PER_NODE", "1")) == Slots{std::nullopt, std::nullopt});
  CHECK(slots(with(with(batch(), "SLURM_NTASKS", "2"), "SLURM_GPUS_ON_NODE", "8")) ==
        Slots{std::nullopt, std::nullopt});
  CHECK(slots(with(with(uneven, "SLURM_NTASKS", "4"), "SLURM_GPUS_ON_NODE", "8")) == Slots{3, 1});
}

TEST_CASE("variables that cannot be right are refused by name and value") {
  CHECK(refusal(with(batch(), "SLURM_JOB_ID", "x")).starts_with("SLURM_JOB_ID is 'x': a whole number"));
  CHECK(refusal(with(batch(), "SLURM_JOB_NUM_NODES", "3")) ==
        "SLURM_JOB_NUM_NODES is '3': SLURM_JOB_NODELIST names 2 hosts");
  CHECK(refusal(with(with(batch(), "SLURM_NTASKS", "2"), "SLURM_TASKS_PER_NODE", "1(x3)")) ==
        "SLURM_TASKS_PER_NODE is '1(x3)': numbers such as 2(x3),1 are needed");
  CHECK(refusal(with(with(batch(), "SLURM_NTASKS", "2"), "SLURM_TASKS_PER_NODE", "2")) ==
        "SLURM_TASKS_PER_NODE is '2': these are 1 numbers, and there are 2 hosts");
  CHECK(refusal(with(batch(), "SLURM_JOB_NODELIST", "n1,n1")) ==
        "SLURM_JOB_NODELIST is 'n1,n1': n1 is in it twice");
  CHECK(refusal(with(batch(), "SLURM_JOB_NODELIST", "n1,-oProxyCommand=x"))
            .ends_with("is not the name of a host"));
  CHECK(refusal(with(batch(), "SLURM_JOB_NODELIST", "n1,$(id)")).ends_with("is not the name of a host"));
  CHECK(refusal(with(batch(), "SLURM_GPUS_ON_NODE", "many")).starts_with("SLURM_GPUS_ON_NODE is 'many'"));
  CHECK(refusal(with(step(), "SLURM_NODEID", "2"))
            .starts_with("SLURM_NODEID is '2': a whole number from 0 to 1"));
  CHECK(
      refusal(without(step(), "SLURM_NODEID")).starts_with("SLURM_STEP_ID is set, and SLURM_NODEID is not"));
  CHECK(refusal(with(step(), "SLURM_STEP_ID", "-1")).starts_with("SLURM_STEP_ID is '-1'"));
}

TEST_CASE("a list of hosts that would not end is refused before anything is made of it") {
  for (const char* bomb :
       {"n[0-999999999]", "n[1-300]x[1-300]", "n[0-65536]", "n[3-1]", "n[1-", "n[[1]]", "n[]"}) {
    CAPTURE(bomb);
    CHECK_FALSE(refusal(with(batch(), "SLURM_JOB_NODELIST", bomb)).empty());
  }
}

TEST_CASE("the hosts of a heterogeneous job are those of all its components") {
  // As salloc -N1 : -N2 sets it: nothing without a suffix but the job.
  const Environ salloc = {{"SLURM_JOB_ID", "7"},
                          {"SLURM_HET_SIZE", "2"},
                          {"SLURM_JOB_NODELIST_HET_GROUP_0", "n1"},
                          {"SLURM_JOB_NODELIST_HET_GROUP_1", "n[2-3]"},
                          {"SLURM_JOB_NUM_NODES_HET_GROUP_1", "2"},
                          {"SLURM_TASKS_PER_NODE_HET_GROUP_1", "4(x2)"}};
  const auto whole = slurm_allocation(salloc);
  REQUIRE(whole);
  CHECK(whole->hosts == std::vector<std::string>{"n1", "n2", "n3"});
  CHECK(whole->tasks.empty());
  CHECK(slurm_part(*whole) == SlurmPart::controller);
  CHECK(slurm_allocation(with(salloc, "SLURM_NTASKS_HET_GROUP_1", "8"))->tasks == std::vector<int>{1, 4, 4});
  CHECK(refusal(without(salloc, "SLURM_JOB_NODELIST_HET_GROUP_1"))
            .starts_with("SLURM_HET_SIZE is 2, and SLURM_JOB_NODELIST_HET_GROUP_1 is not set"));
  CHECK(refusal(with(salloc, "SLURM_JOB_NODELIST_HET_GROUP_0", "n2"))
            .ends_with("n2 is in two components, and one agent per host is needed"));
  CHECK(slurm_allocation(with(step(), "SLURM_HET_SIZE", "2"))->hosts.size() == 2);
}

}  // namespace fleetrun::launcher
