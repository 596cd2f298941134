#include "launcher/schedulers/pod_environment.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

using Part = PodEnvironment::Part;

Environ with(Environ environ, std::string name, std::string value) {
  environ.set(std::move(name), std::move(value));
  return environ;
}

Environ without(Environ environ, std::string_view name) {
  environ.erase(name);
  return environ;
}

Environ paddle_worker() {
  return {{"PADDLE_TRAINERS", "10.0.0.3,10.0.0.4"},
          {"PADDLE_TRAINERS_NUM", "2"},
          {"PADDLE_TRAINER_ID", "1"},
          {"POD_IP", "10.0.0.4"},
          {"PADDLE_PORT", "2379"},
          {"TRAINING_ROLE", "TRAINER"},
          {"TRAINER_PORTS_NUM", "20"},
          {"PADDLE_TRAINER_ENDPOINTS", "10.0.0.3:2379,10.0.0.4:2379"}};
}

Environ paddle_ps() {
  return with(with(paddle_worker(), "PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:2379,10.0.0.2:2379"),
              "PADDLE_WITH_GLOO", "1");
}

Environ volcano_worker() {
  return {{"VC_TASK_INDEX", "1"}, {"VC_PS_HOSTS", "job-ps-0.job"},
          {"VC_PS_NUM", "1"},     {"VC_WORKER_HOSTS", "job-worker-0.job,job-worker-1.job"},
          {"VC_WORKER_NUM", "2"}, {"HOSTNAME", "job-worker-1"}};
}

Environ indexed() {
  return {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"JOB_COMPLETION_INDEX", "2"}, {"HOSTNAME", "train-2"}};
}

Environ pytorch() {
  return {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
          {"MASTER_ADDR", "job-master-0"},
          {"MASTER_PORT", "23456"},
          {"WORLD_SIZE", "3"},
          {"RANK", "1"},
          {"HOSTNAME", "job-worker-0"}};
}

std::string refusal(const Environ& environ, std::optional<NodeCount> asked = std::nullopt) {
  try {
    (void)pod_environment(environ, asked);
  } catch (const Error& error) {
    CHECK(error.hint() ==
          "--nnodes=1 starts on this host alone, and --master with --nnodes and --rank says it all");
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a worker of a collective PaddleJob is understood") {
  const auto pod = pod_environment(paddle_worker(), std::nullopt);
  REQUIRE(pod);
  CHECK(pod->engine == "a PaddleJob");
  CHECK(pod->master == Endpoint{"10.0.0.3", 2379});
  CHECK(pod->nodes == NodeCount{2, 2, 1});
  CHECK(pod->node_rank == 1);
  CHECK(pod->host == "10.0.0.4");
  CHECK(pod->part == Part::any);
}

TEST_CASE("a Paddle cloud of 1.x that only trains names no role") {
  const auto pod = pod_environment(without(paddle_worker(), "TRAINING_ROLE"), std::nullopt);
  REQUIRE(pod);
  CHECK(pod->master == Endpoint{"10.0.0.3", 2379});
  CHECK(pod->nodes == NodeCount{2, 2, 1});
  CHECK(pod->node_rank == 1);
  CHECK(pod->part == Part::any);
}

TEST_CASE("pods of a parameter-server PaddleJob run their role alone, and servers come first") {
  const auto trainer = pod_environment(paddle_ps(), std::nullopt);
  REQUIRE(trainer);
  CHECK(trainer->master == Endpoint{"10.0.0.1", 2379});
  CHECK(trainer->nodes == NodeCount{4, 4, 1});
  CHECK(trainer->node_rank == 3);
  CHECK(trainer->part == Part::trainer);
  const auto server =
      pod_environment(with(with(with(paddle_ps(), "TRAINING_ROLE", "PSERVER"), "PADDLE_TRAINER_ID", "0"),
                           "POD_IP", "10.0.0.1"),
                      std::nullopt);
  REQUIRE(server);
  CHECK(server->node_rank == 0);
  CHECK(server->part == Part::server);
}

TEST_CASE("an elastic PaddleJob meets in its etcd") {
  const Environ environ = {{"PADDLE_ELASTIC_SERVER", "etcd:2379"},
                           {"PADDLE_ELASTIC_NP", "2:4"},
                           {"PADDLE_ELASTIC_JOB_ID", "ns-job"},
                           {"POD_IP", "10.0.0.4"}};
  const auto pod = pod_environment(environ, std::nullopt);
  REQUIRE(pod);
  CHECK(pod->kind == Rendezvous::Kind::etcd);
  CHECK(pod->etcd == "etcd:2379");
  CHECK(pod->job_id == "ns-job");
  CHECK(pod->nodes == NodeCount{2, 4, 1});
  CHECK(refusal(with(environ, "PADDLE_ELASTIC_NP", "4:2")) ==
        "PADDLE_ELASTIC_NP is '4:2': a number of pods or MIN:MAX is needed");
}

TEST_CASE("a Volcano pod finds its place by its name, servers first") {
  const auto pod = pod_environment(volcano_worker(), std::nullopt);
  REQUIRE(pod);
  CHECK(pod->master == Endpoint{"job-ps-0.job", 6768});
  CHECK(pod->nodes == NodeCount{3, 3, 1});
  CHECK(pod->node_rank == 2);
  CHECK(pod->part == Part::trainer);
  const auto server = pod_environment(
      with(with(volcano_worker(), "HOSTNAME", "job-ps-0"), "VC_TASK_INDEX", "0"), std::nullopt);
  REQUIRE(server);
  CHECK(server->node_rank == 0);
  CHECK(server->part == Part::server);
}

TEST_CASE(
    "Volcano's master comes before its workers, and a task of any name will do when it is the only one") {
  Environ environ = without(without(volcano_worker(), "VC_PS_HOSTS"), "VC_PS_NUM");
  environ.set("VC_MASTER_HOSTS", "job-master-0.job");
  const auto pod = pod_environment(environ, std::nullopt);
  REQUIRE(pod);
  CHECK(pod->master.host == "job-master-0.job");
  CHECK(pod->node_rank == 2);
  CHECK(pod->part == Part::any);
  const auto lone = pod_environment(
      {{"VC_TASK_INDEX", "1"}, {"VC_NODE_HOSTS", "a-node-0.a,a-node-1.a"}, {"HOSTNAME", "a-node-1"}},
      std::nullopt);
  REQUIRE(lone);
  CHECK(lone->node_rank == 1);
}

TEST_CASE("a Volcano pod of a task that does not train is alone") {
  Environ environ = with(volcano_worker(), "VC_TENSORBOARD_HOSTS", "job-tensorboard-0.job");
  environ.set("HOSTNAME", "job-tensorboard-0");
  environ.set("VC_TASK_INDEX", "0");
  CHECK_FALSE(pod_environment(environ, std::nullopt));
}

TEST_CASE("pods of Kubernetes' own jobs know all but the number of pods, which the user gives") {
  CHECK_FALSE(pod_environment(indexed(), std::nullopt));
  const auto pod = pod_environment(indexed(), NodeCount{2, 4, 2});
  REQUIRE(pod);
  CHECK(pod->master == Endpoint{"train-0.train", 6768});
  CHECK(pod->nodes == NodeCount{2, 4, 2});
  CHECK(pod->node_rank == 2);
  CHECK_FALSE(pod_environment(with(indexed(), "HOSTNAME", "other"), NodeCount{4, 4, 1}));
  CHECK_FALSE(pod_environment(without(indexed(), "KUBERNETES_SERVICE_HOST"), NodeCount{4, 4, 1}));
  CHECK(refusal(indexed(), NodeCount{2, 2, 1}) ==
        "JOB_COMPLETION_INDEX is '2': the job has 2 pods (--nnodes)");
}

TEST_CASE("a JobSet's pods have the set's names, and ranks over all its jobs") {
  Environ environ = with(with(indexed(), "JOBSET_NAME", "set"), "REPLICATED_JOB_NAME", "workers");
  environ.set("HOSTNAME", "set-workers-1-2");
  environ.set("JOB_INDEX", "1");
  environ.set("REPLICATED_JOB_REPLICAS", "2");
  const auto pod = pod_environment(environ, NodeCount{8, 8, 1});
  REQUIRE(pod);
  CHECK(pod->engine == "a JobSet");
  CHECK(pod->master == Endpoint{"set-workers-0-0.set", 6768});
  CHECK(pod->node_rank == 6);
  CHECK(refusal(environ, NodeCount{7, 7, 1}) ==
        "REPLICATED_JOB_REPLICAS is '2': 7 pods (--nnodes) are not a multiple");
}

TEST_CASE("a PyTorchJob's pods meet beside the store of their first one") {
  const auto pod = pod_environment(pytorch(), std::nullopt);
  REQUIRE(pod);
  CHECK(pod->master == Endpoint{"job-master-0", 23457});
  CHECK(pod->master_by_torchrun);
  CHECK(pod->nodes == NodeCount{3, 3, 1});
  CHECK(pod->node_rank == 1);
  const auto first = pod_environment(
      with(with(with(pytorch(), "MASTER_ADDR", "localhost"), "RANK", "0"), "HOSTNAME", "job-master-0"),
      std::nullopt);
  REQUIRE(first);
  CHECK(first->master.host == "job-master-0");
}

TEST_CASE("a trainer of somebody's launcher does not become one of several hosts") {
  for (const auto& [name, value] :
       {std::pair("LOCAL_RANK", "0"), std::pair("TORCHELASTIC_RUN_ID", "x"), std::pair("FLEETRUN_RANK", "0"),
        std::pair("PADDLE_CURRENT_ENDPOINT", "h:1"), std::pair("PADDLE_LOCAL_RANK", "0")}) {
    CAPTURE(name);
    CHECK_FALSE(pod_environment(with(pytorch(), name, value), std::nullopt));
    CHECK_FALSE(pod_environment(with(paddle_worker(), name, value), std::nullopt));
    CHECK_FALSE(pod_environment(with(volcano_worker(), name, value), std::nullopt));
    CHECK_FALSE(pod_environment(with(indexed(), name, value), NodeCount{4, 4, 1}));
  }
  // Outside of a pod, somebody's RANK and WORLD_SIZE mean nothing.
  CHECK_FALSE(pod_environment(without(pytorch(), "KUBERNETES_SERVICE_HOST"), std::nullopt));
}

TEST_CASE("one pod is alone, and so is whoever asks for one host") {
  CHECK_FALSE(pod_environment(with(pytorch(), "WORLD_SIZE", "1"), std::nullopt));
  CHECK_FALSE(pod_environment(pytorch(), NodeCount{1, 1, 1}));
  CHECK_FALSE(pod_environment(volcano_worker(), NodeCount{1, 1, 1}));
  CHECK_FALSE(pod_environment({}, std::nullopt));
  CHECK_FALSE(pod_environment({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"HOSTNAME", "x"}}, std::nullopt));
  Environ lone = with(with(paddle_worker(), "PADDLE_TRAINERS", "10.0.0.4"), "PADDLE_TRAINERS_NUM", "1");
  CHECK_FALSE(pod_environment(with(lone, "PADDLE_TRAINER_ID", "0"), std::nullopt));
  // Paddle 1.x says how many there are.
  CHECK_FALSE(pod_environment(with(paddle_worker(), "PADDLE_TRAINERS", "2"), std::nullopt));
}

TEST_CASE("what disagrees is refused by name and value") {
  CHECK(refusal(with(paddle_worker(), "PADDLE_TRAINERS_NUM", "3")) ==
        "PADDLE_TRAINERS_NUM is '3': PADDLE_TRAINERS names 2");
  CHECK(refusal(with(paddle_worker(), "PADDLE_TRAINER_ID", "2")) ==
        "PADDLE_TRAINER_ID is '2': there are fewer pods of this role");
  CHECK(refusal(with(paddle_worker(), "PADDLE_TRAINER_ID", "-1")).starts_with("PADDLE_TRAINER_ID is '-1'"));
  CHECK(refusal(with(paddle_worker(), "TRAINING_ROLE", "HETER")) ==
        "TRAINING_ROLE is 'HETER': PSERVER or TRAINER is needed");
  CHECK(refusal(with(paddle_worker(), "PADDLE_TRAINERS", "10.0.0.3,-x")).starts_with("PADDLE_TRAINERS is"));
  CHECK(refusal(with(volcano_worker(), "VC_WORKER_NUM", "3")) ==
        "VC_WORKER_NUM is '3': VC_WORKER_HOSTS names 2");
  CHECK(refusal(with(volcano_worker(), "VC_TASK_INDEX", "x")).starts_with("VC_TASK_INDEX is 'x'"));
  CHECK(refusal(with(pytorch(), "RANK", "3")) == "RANK is '3': the job has 3 pods");
  CHECK(refusal(with(pytorch(), "MASTER_PORT", "65535")).starts_with("MASTER_PORT is '65535'"));
  CHECK(refusal(with(pytorch(), "MASTER_ADDR", "$(id)")).starts_with("MASTER_ADDR is '$(id)'"));
}

}  // namespace fleetrun::launcher
