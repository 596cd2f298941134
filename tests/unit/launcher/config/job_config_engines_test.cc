#include <doctest/doctest.h>

#include "launcher/config/make_job_config.h"
#include "launcher/model/job_config.h"
#include "launcher/schedulers/node_file.h"
#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

namespace fleetrun::launcher {
namespace {

JobConfig configured(const Environ& environ, std::map<std::string, std::string, std::less<>> values = {}) {
  Options options;
  options.script = "train.py";
  options.values = std::move(values);
  return make_job_config(options, environ);
}

Environ batch() {
  return {{"SLURM_JOB_ID", "1234"},
          {"SLURM_JOB_NODELIST", "n[1-2]"},
          {"SLURM_JOB_NUM_NODES", "2"},
          {"SLURMD_NODENAME", "n1"}};
}

Environ step() {
  Environ environ = batch();
  environ.set("SLURM_STEP_ID", "3");
  environ.set("SLURM_STEP_NODELIST", "n[1-2]");
  environ.set("SLURM_STEP_TASKS_PER_NODE", "1(x2)");
  environ.set("SLURM_NODEID", "1");
  return environ;
}

}  // namespace

TEST_CASE("in a batch script the hosts are those of the allocation") {
  const JobConfig config = configured(batch());
  CHECK(config.host_list.slurm);
  CHECK(config.host_list.given());
  CHECK(config.rendezvous.kind == Rendezvous::Kind::none);
  using Entries = std::vector<std::pair<std::string, std::string>>;
  CHECK(config.signal_map == Entries{{"USR1", "drain"}, {"TERM", "drain"}});
  CHECK(configured(batch(), {{"signal_map", "SIGUSR1=forward"}}).signal_map ==
        Entries{{"SIGUSR1", "forward"}, {"TERM", "drain"}});
  CHECK(config.notes ==
        std::vector<std::string>{
            "Slurm job 1234 (SLURM_JOB_NODELIST): one agent on each of 2 hosts, through srun"});
}

TEST_CASE("launchers of a step meet at its first host") {
  const JobConfig config = configured(step());
  CHECK_FALSE(config.host_list.given());
  CHECK(config.rendezvous.kind == Rendezvous::Kind::master);
  CHECK(config.rendezvous.master.host == "n1");
  CHECK(config.rendezvous.nodes == NodeCount{2, 2, 1});
  CHECK(config.rendezvous.node_rank == 1);
  CHECK(config.rendezvous.node_name == "n2");
}

TEST_CASE("the hosts of PBS, LSF and Grid Engine are read from their file") {
  const tests::TempDir folder;
  const auto file = [&](std::string_view text) { return folder.write("hosts", text); };
  const auto note = [](const JobConfig& config) { return config.notes.empty() ? "" : config.notes.front(); };
  SUBCASE("PBS counts its processes by lines") {
    const Environ environ = {{"PBS_NODEFILE", file("n1\nn1\nn2\nn2\n")}, {"PBS_JOBID", "12.head"}};
    CHECK(note(configured(environ)) ==
          "PBS job 12.head (PBS_NODEFILE): one agent on each of 2 hosts, over ssh");
    CHECK(configured(environ).host_list.given());
    const auto found = node_file(environ);
    REQUIRE(found);
    CHECK(found->hosts.hosts.size() == 2);
    CHECK(found->hosts.hosts[1].name == "n2");
    CHECK(found->hosts.hosts[1].slots == 2);
    CHECK_FALSE(configured(environ, {{"nnodes", "1"}}).host_list.given());
    CHECK_FALSE(configured(environ, {{"hosts", "h1,h2"}}).host_list.node_file);
    CHECK_THROWS_WITH_AS(configured(environ, {{"nnodes", "3"}}),
                         doctest::Contains("PBS job 12.head has 2 hosts"), Error);
  }
  SUBCASE("LSF does so too") {
    const Environ environ = {{"LSB_DJOB_HOSTFILE", file("n1\nn2\n")}, {"LSB_JOBID", "7"}};
    CHECK(note(configured(environ)) ==
          "LSF job 7 (LSB_DJOB_HOSTFILE): one agent on each of 2 hosts, over ssh");
  }
  SUBCASE("Grid Engine has a number in each line") {
    const Environ environ = {{"PE_HOSTFILE", file("n1 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 UNDEFINED\n")},
                             {"JOB_ID", "5"}};
    CHECK(note(configured(environ)) ==
          "Grid Engine job 5 (PE_HOSTFILE): one agent on each of 2 hosts, over ssh");
    CHECK(node_file(environ)->hosts.hosts[0].slots == 4);
  }
  SUBCASE("LSF has them in variables where there is no file") {
    const Environ environ = {{"LSB_MCPU_HOSTS", "n1 4 n2 2"}, {"LSB_HOSTS", "n1 n1 n1 n1 n2 n2"}};
    CHECK(note(configured(environ)) == "LSF (LSB_MCPU_HOSTS): one agent on each of 2 hosts, over ssh");
    CHECK(node_file(environ)->hosts.hosts[0].slots == 4);
    CHECK(node_file({{"LSB_HOSTS", "n1 n1 n2"}})->hosts.hosts[0].slots == 2);
    CHECK_FALSE(configured({{"LSB_HOSTS", "n1 n1"}}).host_list.given());
  }
  SUBCASE("OAR has a file like PBS, and a command in the place of ssh") {
    const Environ environ = {{"OAR_NODEFILE", file("n1\nn1\nn2\n")}, {"OAR_JOB_ID", "9"}};
    CHECK(note(configured(environ)) == "OAR job 9 (OAR_NODEFILE): one agent on each of 2 hosts, over ssh");
    CHECK(node_file(environ)->hosts.hosts[0].slots == 2);
    CHECK(node_file(environ)->ssh == "oarsh");
  }
  SUBCASE("the host files of Open MPI and MPICH are read as --hostfile") {
    const std::string path = file("n1 slots=4\nn2 slots=4\n");
    for (const char* variable : {"PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile"}) {
      CHECK(node_file({{variable, path}})->hosts.hosts[1].slots == 4);
      CHECK(configured({{variable, path}}).host_list.node_file);
    }
    const std::string colons = file("n1:3\nn2:3\n");
    for (const char* variable : {"I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE"})
      CHECK(node_file({{variable, colons}})->hosts.hosts[1].slots == 3);
  }
  SUBCASE("one of several fleetruns does not start the whole job") {
    for (const auto& [name, value] : {std::pair("OMPI_COMM_WORLD_SIZE", "2"), std::pair("PMI_SIZE", "2"),
                                      std::pair("HOROVOD_SIZE", "2"), std::pair("PBS_NODENUM", "1")}) {
      const Environ environ = {{"PBS_NODEFILE", file("n1\nn2\n")}, {name, value}};
      CHECK_THROWS_WITH_AS(configured(environ), doctest::Contains("each would start the whole job"), Error);
      CHECK_FALSE(configured(environ, {{"nnodes", "1"}}).host_list.given());
      CHECK_FALSE(configured(environ, {{"nnodes", "2"}, {"master", "n1:6000"}}).host_list.given());
    }
    CHECK(configured({{"PBS_NODEFILE", file("n1\nn2\n")}, {"PBS_NODENUM", "0"}}).host_list.given());
    const Environ mpi = {{"OMPI_COMM_WORLD_SIZE", "4"}};
    CHECK(note(configured(mpi)).find("one of several fleetruns (OMPI_COMM_WORLD_SIZE is 4), each of which") ==
          0);
    CHECK(configured(mpi, {{"nnodes", "1"}}).notes.empty());
    CHECK(configured({{"OMPI_COMM_WORLD_SIZE", "1"}}).notes.empty());
  }
  SUBCASE("a job of one host changes nothing, a file that is not here is told of") {
    CHECK_FALSE(configured({{"PBS_NODEFILE", file("n1\nn1\n")}}).host_list.given());
    const JobConfig alone = configured({{"PBS_NODEFILE", "/no/such/file"}});
    CHECK_FALSE(alone.host_list.given());
    CHECK(note(alone) == "PBS_NODEFILE names a file that cannot be read here: this host alone runs it");
  }
}

TEST_CASE("flags win over Slurm") {
  CHECK_FALSE(configured(batch(), {{"nnodes", "1"}}).host_list.given());
  CHECK(configured(batch(), {{"nnodes", "1"}}).rendezvous.kind == Rendezvous::Kind::none);
  const JobConfig met = configured(step(), {{"master", "elsewhere:1000"}, {"nnodes", "3"}, {"rank", "2"}});
  CHECK(met.rendezvous.master == Endpoint{"elsewhere", 1000});
  CHECK(met.rendezvous.node_rank == 2);
  CHECK(configured(step(), {{"rank", "0"}}).rendezvous.node_rank == 0);
  const JobConfig listed = configured(batch(), {{"hosts", "a,b"}});
  CHECK_FALSE(listed.host_list.slurm);
  CHECK(listed.host_list.given());
  CHECK(configured(batch(), {{"nnodes", "1:2"}}).rendezvous.elastic);
}

TEST_CASE("more hosts than the allocation has are refused") {
  try {
    (void)configured(batch(), {{"nnodes", "3"}});
    FAIL("3 of 2 hosts were taken");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "--nnodes is '3': Slurm job 1234 has 2 hosts");
    CHECK(error.hint() == "ask Slurm for more (--nodes), or leave it out");
  }
}

TEST_CASE("a trainer in an allocation that calls fleetrun starts a job of its own") {
  Environ environ = step();
  environ.set("FLEETRUN_RANK", "1");
  const JobConfig config = configured(environ);
  CHECK(config.rendezvous.kind == Rendezvous::Kind::none);
  CHECK_FALSE(config.host_list.given());
}

TEST_CASE("a pod's environment is understood, and said") {
  const Environ environ = {{"VC_TASK_INDEX", "1"},
                           {"VC_PS_HOSTS", "job-ps-0.job"},
                           {"VC_WORKER_HOSTS", "job-worker-0.job,job-worker-1.job"},
                           {"HOSTNAME", "job-worker-1"}};
  const JobConfig config = configured(environ);
  CHECK(config.rendezvous.kind == Rendezvous::Kind::master);
  CHECK(config.rendezvous.node_rank == 2);
  CHECK(config.mode == Mode::ps);
  CHECK(config.server_num == 0);
  CHECK(config.trainer_num == 1);
  REQUIRE(config.notes.size() == 1);
  CHECK(config.notes.front() ==
        "a pod of Volcano (VC_TASK_INDEX, HOSTNAME, VC_PS_HOSTS, VC_WORKER_HOSTS): 3 hosts, which meet at "
        "job-ps-0.job:6768");
  CHECK(configured(environ, {{"nnodes", "1"}}).rendezvous.kind == Rendezvous::Kind::none);
}

TEST_CASE("a pod among others is known by its name") {
  const std::map<std::string, std::string, std::less<>> among = {{"master", "h:1000"}, {"nnodes", "2"}};
  CHECK(configured({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"HOSTNAME", "train-1"}}, among)
            .rendezvous.node_name == "train-1");
  CHECK(configured({{"HOSTNAME", "train-1"}}, among).rendezvous.node_name.empty());
}

TEST_CASE("an outer torchrun's variables alone leave a launch on this host") {
  const Environ environ = {
      {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "29500"}};
  CHECK(configured(environ).rendezvous.kind == Rendezvous::Kind::none);
}

}  // namespace fleetrun::launcher
