#include "runtime/base/env_contract.h"

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "runtime/base/env_variables.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

using namespace fleetrun;

namespace {

std::vector<Endpoint> endpoints(int count, int first_port, const std::string& host = "127.0.0.1") {
  std::vector<Endpoint> list;
  for (int i = 0; i < count; ++i) list.push_back({host, static_cast<std::uint16_t>(first_port + i)});
  return list;
}

Identity ps_identity(Role role, int rank) {
  Identity id;
  id.mode = Mode::ps;
  id.role = role;
  id.rank = rank;
  id.local_rank = rank;
  id.servers = endpoints(2, 7000);
  id.trainers = endpoints(3, 8000);
  id.gloo.http = Endpoint{"127.0.0.1", 9000};
  id.gloo.path = "/logs/.gloo-abcdef";
  id.job_id = "default";
  id.pod_name = "abcdef";
  id.log_dir = "/logs";
  return id;
}

Identity collective_identity(int rank, int size) {
  Identity id;
  id.rank = rank;
  id.local_rank = rank;
  id.local_size = size;
  id.trainers = endpoints(size, 8000, rank % 2 ? "::1" : "10.0.0.1");
  id.master = {"10.0.0.1", 7000};
  id.pod_name = "abcdef";
  id.log_dir = "/logs";
  return id;
}

Identity rpc_identity(int rank, int size) {
  Identity id;
  id.mode = Mode::rpc;
  id.rank = rank;
  id.local_rank = rank;
  id.hosts.reset();
  id.trainers = endpoints(size, 8000);
  id.master = {"127.0.0.1", 7000};
  id.pod_name = "abcdef";
  id.log_dir = "/logs";
  return id;
}

Identity own_identity(int rank, int size, int endpoint_count) {
  Identity id;
  id.mode = Mode::own;
  id.own_name = "reader";
  id.rank = rank;
  id.local_rank = rank;
  id.size = size;
  id.hosts.reset();
  id.trainers = endpoints(endpoint_count, 8000);
  id.pod_name = "abcdef";
  id.log_dir = "/logs";
  return id;
}

std::set<std::string> names(const Environ& environ) {
  std::set<std::string> result;
  for (const auto& [name, value] : environ.values()) result.insert(name);
  return result;
}

}  // namespace

TEST_CASE(
    "an identity that is written to the environment is read back the same, for every role, rank and shape") {
  std::vector<Identity> identities;
  for (const bool lists : {false, true}) {
    for (const std::string with_gloo : {"0", "1", "2"}) {
      for (int rank = 0; rank < 3; ++rank) {
        for (const Role role : {Role::server, Role::trainer}) {
          if (role == Role::server && rank == 2) continue;
          Identity id = ps_identity(role, rank);
          if (lists) id.hosts.reset();
          id.gloo.with_gloo = with_gloo;
          id.local_rank = rank / 2;
          identities.push_back(id);
        }
      }
    }
  }
  for (int size = 1; size < 5; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      identities.push_back(collective_identity(rank, size));
      identities.back().devices = {std::to_string(rank)};
      identities.back().hosts = 4;
      identities.push_back(collective_identity(rank, size));
      identities.back().devices = {"0", "1", "2"};
      identities.back().on_xpus = rank % 2 == 1;
      identities.push_back(collective_identity(rank, size));
      identities.back().torch = {"learner", "run-7", "SIGTERM", 3};
      identities.push_back(rpc_identity(rank, size));
      identities.push_back(own_identity(rank, size, size));
      identities.push_back(own_identity(rank, size, 0));
      identities.push_back(collective_identity(rank, size));
      identities.back().own_name = "learner";
      for (Identity id :
           {collective_identity(rank, size), rpc_identity(rank, size), own_identity(rank, size, 0)}) {
        id.world = WorldTag{rank, size, 7, std::string(32, 'a'), "0123456789abcdef"};
        identities.push_back(id);
      }
    }
  }
  CHECK(identities.size() == 130);
  for (const Identity& id : identities) CHECK(identity_from(to_environ(id)) == id);
}

TEST_CASE("a server of a parameter-server job gets the contract's variables and no others") {
  const Environ environ = to_environ(ps_identity(Role::server, 1));
  CHECK(names(environ) == std::set<std::string>{"FLEETRUN_ATTEMPT",
                                                "FLEETRUN_JOB_ID",
                                                "FLEETRUN_LOCAL_RANK",
                                                "FLEETRUN_LOG_DIR",
                                                "FLEETRUN_POD",
                                                "FLEETRUN_RANK",
                                                "FLEETRUN_ROLE",
                                                "FLEETRUN_SIZE",
                                                "PADDLE_GLOO_FS_PATH",
                                                "PADDLE_GLOO_HTTP_ENDPOINT",
                                                "PADDLE_GLOO_RENDEZVOUS",
                                                "PADDLE_LOG_DIR",
                                                "PADDLE_NNODES",
                                                "PADDLE_PORT",
                                                "PADDLE_PSERVERS_IP_PORT_LIST",
                                                "PADDLE_ROLE",
                                                "PADDLE_TRAINERS_NUM",
                                                "PADDLE_TRAINER_ENDPOINTS",
                                                "PADDLE_WITH_GLOO",
                                                "POD_IP",
                                                "POD_NAME",
                                                "TRAINING_ROLE"});
  CHECK(*environ.find("PADDLE_PSERVERS_IP_PORT_LIST") == "127.0.0.1:7000,127.0.0.1:7001");
  CHECK(*environ.find("PADDLE_PORT") == "7001");
  CHECK(*environ.find("POD_IP") == "127.0.0.1");
  CHECK(*environ.find("TRAINING_ROLE") == "PSERVER");
  CHECK(*environ.find("PADDLE_ROLE") == "PSERVER");
  CHECK(*environ.find("PADDLE_GLOO_RENDEZVOUS") == "3");
  CHECK(*environ.find("PADDLE_GLOO_HTTP_ENDPOINT") == "127.0.0.1:9000");
}

TEST_CASE(
    "a trainer of a parameter-server job has a trainer id as well; user-written lists leave out "
    "PADDLE_NNODES") {
  Identity id = ps_identity(Role::trainer, 2);
  CHECK(*to_environ(id).find("PADDLE_TRAINER_ID") == "2");
  CHECK(*to_environ(id).find("PADDLE_PORT") == "8002");
  CHECK(*to_environ(id).find("TRAINING_ROLE") == "TRAINER");
  id.hosts.reset();
  CHECK_FALSE(to_environ(id).has("PADDLE_NNODES"));
}

TEST_CASE("a collective trainer gets the contract's variables, and gloo exactly when it has no device") {
  Identity id = collective_identity(0, 2);
  const Environ environ = to_environ(id);
  CHECK(names(environ) == std::set<std::string>{"FLEETRUN_ATTEMPT",
                                                "FLEETRUN_JOB_ID",
                                                "FLEETRUN_LOCAL_RANK",
                                                "FLEETRUN_LOG_DIR",
                                                "FLEETRUN_POD",
                                                "FLEETRUN_RANK",
                                                "FLEETRUN_ROLE",
                                                "FLEETRUN_SIZE",
                                                "GROUP_RANK",
                                                "GROUP_WORLD_SIZE",
                                                "LOCAL_RANK",
                                                "LOCAL_WORLD_SIZE",
                                                "MASTER_ADDR",
                                                "MASTER_PORT",
                                                "PADDLE_AUTO_CLUSTER",
                                                "PADDLE_CURRENT_ENDPOINT",
                                                "PADDLE_DISTRI_BACKEND",
                                                "PADDLE_GLOBAL_RANK",
                                                "PADDLE_GLOBAL_SIZE",
                                                "PADDLE_LOCAL_RANK",
                                                "PADDLE_LOCAL_SIZE",
                                                "PADDLE_LOG_DIR",
                                                "PADDLE_MASTER",
                                                "PADDLE_NNODES",
                                                "PADDLE_RANK_IN_NODE",
                                                "PADDLE_TRAINERS_NUM",
                                                "PADDLE_TRAINER_ENDPOINTS",
                                                "PADDLE_TRAINER_ID",
                                                "POD_NAME",
                                                "RANK",
                                                "ROLE_NAME",
                                                "ROLE_RANK",
                                                "ROLE_WORLD_SIZE",
                                                "TF_CONFIG",
                                                "TORCHELASTIC_MAX_RESTARTS",
                                                "TORCHELASTIC_RESTART_COUNT",
                                                "TORCHELASTIC_RUN_ID",
                                                "TORCHELASTIC_SIGNALS_TO_HANDLE",
                                                "TORCHELASTIC_USE_AGENT_STORE",
                                                "WORLD_SIZE"});
  CHECK(*environ.find("PADDLE_DISTRI_BACKEND") == "gloo");
  CHECK(*environ.find("MASTER_ADDR") + ":" + *environ.find("MASTER_PORT") == *environ.find("PADDLE_MASTER"));
  CHECK(*environ.find("TORCHELASTIC_USE_AGENT_STORE") == "False");
  id.devices = {"1"};
  CHECK_FALSE(to_environ(id).has("PADDLE_DISTRI_BACKEND"));
  CHECK(*to_environ(id).find("FLAGS_selected_gpus") == "1");
}

TEST_CASE("TensorFlow is told of several trainers; who is alone keeps what the user's cluster set") {
  const auto is_taken = [](const Identity& id) {
    const auto foreign = foreign_variables(id, false);
    return std::find(foreign.begin(), foreign.end(), "TF_CONFIG") != foreign.end();
  };
  CHECK(*to_environ(collective_identity(1, 2)).find("TF_CONFIG") ==
        R"({"cluster": {"worker": ["[::1]:8000", "[::1]:8001"]}, "task": {"type": "worker", "index": 1}})");
  for (const Identity& id :
       {collective_identity(0, 1), collective_identity(0, 1001), ps_identity(Role::trainer, 0)}) {
    CHECK_FALSE(to_environ(id).has("TF_CONFIG"));
    CHECK_FALSE(is_taken(id));
  }
}

TEST_CASE("an environment that makes no sense is refused, naming the variable") {
  const auto message = [](const Environ& environ) -> std::string {
    try {
      identity_from(environ);
    } catch (const Error& error) {
      std::string text = error.what();
      for (const std::string& context : error.context()) text += " | " + context;
      return text;
    }
    return "accepted";
  };
  CHECK(message(Environ()) == "PADDLE_TRAINER_ENDPOINTS is not set");
  Environ environ = to_environ(ps_identity(Role::server, 0));
  environ.set("TRAINING_ROLE", "HETER_TRAINER");
  CHECK(message(environ) == "TRAINING_ROLE is 'HETER_TRAINER'");
  environ = to_environ(ps_identity(Role::server, 0));
  environ.set("PADDLE_PORT", "7005");
  CHECK(message(environ).find("127.0.0.1:7005 is not in PADDLE_PSERVERS_IP_PORT_LIST") != std::string::npos);
  environ.erase("PADDLE_PORT");
  CHECK(message(environ) == "PADDLE_PORT is not set");
  environ = to_environ(ps_identity(Role::trainer, 0));
  environ.set("PADDLE_TRAINERS_NUM", "4");
  CHECK(message(environ) == "4 trainers, but PADDLE_TRAINER_ENDPOINTS lists 3 | reading PADDLE_TRAINERS_NUM");
  environ = to_environ(ps_identity(Role::trainer, 0));
  environ.set("PADDLE_TRAINER_ID", "x");
  CHECK(message(environ) == "'x' is not a whole number from 0 | reading PADDLE_TRAINER_ID");
  environ.set("PADDLE_TRAINER_ID", "3");
  CHECK(message(environ) == "PADDLE_TRAINER_ID is 3 and there are 3 trainers");
}

TEST_CASE("every variable has a meaning and is there once, and every section has a title and variables") {
  std::set<std::string> seen;
  std::set<EnvSection> sections, titled;
  for (const EnvVariable& variable : env_variables()) {
    CAPTURE(variable.names);
    for (std::string& name : split(variable.names, ' ')) CHECK(seen.insert(std::move(name)).second);
    CHECK_FALSE(variable.meaning.empty());
    sections.insert(variable.section);
  }
  for (const EnvSectionTitle& title : env_section_titles()) CHECK(titled.insert(title.section).second);
  CHECK(sections == titled);
  const Environ environ = to_environ(collective_identity(1, 4));
  for (const auto& [name, value] : environ.values()) CHECK(seen.count(name) == 1);
}

TEST_CASE("what another job left in the environment does not change who a process is") {
  Environ left;  // both modes at once, as a process would inherit them
  const auto add = [](const Environ& from, Environ& to) {
    for (const auto& [name, value] : from.values()) to.set(name, value);
  };
  const Identity server = ps_identity(Role::server, 1), trainer = ps_identity(Role::trainer, 2);
  for (const Identity& other :
       {server, trainer, collective_identity(1, 4), rpc_identity(1, 3), own_identity(0, 2, 2)})
    add(to_environ(other), left);
  left.set("TORCHELASTIC_ERROR_FILE", "/elsewhere");
  for (const Identity& id :
       {server, trainer, collective_identity(0, 2), rpc_identity(2, 3), own_identity(1, 2, 0)}) {
    Environ environ = left;
    for (const std::string& name : foreign_variables(id, true)) environ.erase(name);
    add(to_environ(id), environ);
    CHECK(identity_from(environ) == id);
    CHECK(names(environ) == names(to_environ(id)));
  }
}

TEST_CASE("an rpc trainer has Paddle's four variables, and is read back from them alone") {
  Environ environ = to_environ(rpc_identity(1, 2));
  CHECK(names(environ) == std::set<std::string>{"FLEETRUN_ATTEMPT", "FLEETRUN_ENDPOINTS", "FLEETRUN_JOB_ID",
                                                "FLEETRUN_LOCAL_RANK", "FLEETRUN_LOG_DIR", "FLEETRUN_POD",
                                                "FLEETRUN_RANK", "FLEETRUN_ROLE", "FLEETRUN_SIZE",
                                                "PADDLE_LOG_DIR", "PADDLE_MASTER_ENDPOINT",
                                                "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID",
                                                "PADDLE_WORKER_ENDPOINT", "POD_NAME"});
  environ.erase("FLEETRUN_ENDPOINTS");
  const Identity id = identity_from(environ);
  CHECK(id.trainers.size() == 2);
  CHECK(self_endpoint(id) == Endpoint{"127.0.0.1", 8001});
  CHECK(role_size(id) == 2);
}
