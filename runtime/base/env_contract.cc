// The table below is the whole contract: who gets a variable, what is written, how it is read back.
#include "runtime/base/env_contract.h"

#include <algorithm>

#include "runtime/base/env_variables.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun {
namespace {

constexpr unsigned kCollective = 1, kServer = 2, kPsTrainer = 4, kRpc = 8, kOwn = 16;
constexpr unsigned kPs = kServer | kPsTrainer, kTrainers = kCollective | kPsTrainer | kRpc;
constexpr unsigned kPaddle = kTrainers | kServer, kAll = kPaddle | kOwn;
constexpr int kMaxRanks = 1'000'000;

enum class Need { required, optional, derived };  // derived: written for others, never read back

struct Row {
  const char* name;
  const char* meaning;
  unsigned who;
  Need need;
  std::optional<std::string> (*write)(const Identity&);  // nullopt: not set for this identity
  void (*read)(Identity&, const std::string& value);     // nullptr exactly where need is derived
};

unsigned group_of(const Identity& id) noexcept {
  switch (id.mode) {
    case Mode::collective:
      return kCollective;
    case Mode::rpc:
      return kRpc;
    case Mode::own:
      return kOwn;
    case Mode::ps:
      break;
  }
  return id.role == Role::server ? kServer : kPsTrainer;
}

int parse_count_of(const std::string& value, int min) {
  const auto number = parse_integer(value);
  if (!number || *number < min || *number > kMaxRanks)
    throw Error(ErrorKind::config,
                "'" + printable(value) + "' is not a whole number from " + std::to_string(min));
  return static_cast<int>(*number);
}

std::string count_text(std::size_t count) {
  return std::to_string(count);
}
std::string self_port(const Identity& id) {
  return std::to_string(self_endpoint(id).port);
}

using Text = std::optional<std::string>;

/// What TensorFlow's strategies for several workers read; without it each trains alone and says nothing. One
/// trainer keeps what the user's cluster set, and thousands, whom no such strategy serves, would not fit into
/// an environment.
Text tensorflow_text(const Identity& id) {
  constexpr std::size_t kMaxWorkers = 1000;
  if (id.trainers.size() < 2 || id.trainers.size() > kMaxWorkers) return std::nullopt;
  std::vector<std::string> workers;
  for (const Endpoint& trainer : id.trainers) workers.push_back('"' + to_string(trainer) + '"');
  return R"({"cluster": {"worker": [)" + join(workers, ", ") + R"(]}, "task": {"type": "worker", "index": )" +
         std::to_string(id.rank) + "}}";
}

/// Whether it is the user's, or of the user's cluster, where this process is not given it.
bool is_users(std::string_view name, bool in_job) noexcept {
  return name.starts_with("FLAGS_") || (name == "TF_CONFIG" && !in_job);
}

WorldTag& world_of(Identity& id) {
  return id.world ? *id.world : id.world.emplace();
}

// clang-format off
const Row kRows[] = {
  {"PADDLE_PSERVERS_IP_PORT_LIST", "endpoints of the servers, by rank", kPs, Need::required,
   [](const Identity& id) -> Text { return id.servers.text(); },
   [](Identity& id, const std::string& v) { id.servers = parse_endpoint_list(v); }},
  {"PADDLE_TRAINER_ENDPOINTS", "endpoints of the trainers, by rank", kCollective | kPs, Need::required,
   [](const Identity& id) -> Text { return id.trainers.text(); },
   [](Identity& id, const std::string& v) { id.trainers = parse_endpoint_list(v); }},
  {"FLEETRUN_ENDPOINTS",
   "endpoints of the processes of this role, by rank, where no variable of Paddle's has them", kRpc | kOwn,
   Need::optional,
   [](const Identity& id) -> Text { return id.trainers.empty() ? std::nullopt : Text(id.trainers.text()); },
   [](Identity& id, const std::string& v) { id.trainers = parse_endpoint_list(v); }},
  {"PADDLE_TRAINERS_NUM", "number of trainers of the job", kPaddle, Need::required,
   [](const Identity& id) -> Text { return count_text(id.trainers.size()); },
   [](Identity& id, const std::string& v) {
     const auto count = static_cast<std::size_t>(parse_count_of(v, 1));
     // Paddle's launcher does not list them.
     if (id.mode == Mode::rpc && id.trainers.empty()) id.trainers = std::vector<Endpoint>(count);
     if (count != id.trainers.size())
       throw Error(ErrorKind::config,
                   v + " trainers, but PADDLE_TRAINER_ENDPOINTS lists " + count_text(id.trainers.size()));
   }},
  {"PADDLE_TRAINER_ID", "rank of this trainer over the whole job", kTrainers, Need::required,
   [](const Identity& id) -> Text { return std::to_string(id.rank); },
   [](Identity& id, const std::string& v) { id.rank = parse_count_of(v, 0); }},

  // Collective jobs, as Paddle's launcher describes them.
  {"PADDLE_MASTER", "where rank 0 opens the job's store", kCollective, Need::optional,
   [](const Identity& id) -> Text { return to_string(id.master); },
   [](Identity& id, const std::string& v) { id.master = parse_endpoint(v); }},
  {"PADDLE_GLOBAL_SIZE", "the same as PADDLE_TRAINERS_NUM", kCollective, Need::derived,
   [](const Identity& id) -> Text { return count_text(id.trainers.size()); }, nullptr},
  {"PADDLE_LOCAL_SIZE", "number of trainers on this host", kCollective, Need::optional,
   [](const Identity& id) -> Text { return std::to_string(id.local_size); },
   [](Identity& id, const std::string& v) { id.local_size = parse_count_of(v, 1); }},
  {"PADDLE_GLOBAL_RANK", "the same as PADDLE_TRAINER_ID", kCollective, Need::derived,
   [](const Identity& id) -> Text { return std::to_string(id.rank); }, nullptr},
  {"PADDLE_LOCAL_RANK", "rank of this trainer on this host", kCollective, Need::optional,
   [](const Identity& id) -> Text { return std::to_string(id.local_rank); },
   [](Identity& id, const std::string& v) { id.local_rank = parse_count_of(v, 0); }},
  {"PADDLE_RANK_IN_NODE", "the same as PADDLE_LOCAL_RANK", kCollective, Need::derived,
   [](const Identity& id) -> Text { return std::to_string(id.local_rank); }, nullptr},
  {"PADDLE_CURRENT_ENDPOINT", "where this trainer listens", kCollective, Need::derived,
   [](const Identity& id) -> Text { return to_string(self_endpoint(id)); }, nullptr},
  {"PADDLE_AUTO_CLUSTER", "value of --auto_cluster_config", kCollective, Need::optional,
   [](const Identity& id) -> Text { return id.auto_cluster; },
   [](Identity& id, const std::string& v) { id.auto_cluster = v; }},
  {"PADDLE_DISTRI_BACKEND", "gloo: the trainers run on the CPU", kCollective, Need::derived,
   [](const Identity& id) -> Text { return id.devices.empty() ? Text("gloo") : std::nullopt; }, nullptr},
  {"FLAGS_selected_gpus", "the devices of this trainer: indices into those that it sees", kCollective,
   Need::optional,
   [](const Identity& id) -> Text {
     return id.devices.empty() || id.on_xpus ? std::nullopt : Text(join(id.devices, ","));
   },
   [](Identity& id, const std::string& v) { id.devices = split(v, ','); }},
  {"FLAGS_selected_xpus", "the same where the devices are XPUs", kCollective, Need::optional,
   [](const Identity& id) -> Text {
     return id.devices.empty() || !id.on_xpus ? std::nullopt : Text(join(id.devices, ","));
   },
   [](Identity& id, const std::string& v) { id.devices = split(v, ','), id.on_xpus = true; }},

  // Collective jobs, as torchrun describes them.
  {"RANK", "the same as PADDLE_TRAINER_ID", kCollective, Need::derived,
   [](const Identity& id) -> Text { return std::to_string(id.rank); }, nullptr},
  {"WORLD_SIZE", "the same as PADDLE_TRAINERS_NUM", kCollective, Need::derived,
   [](const Identity& id) -> Text { return count_text(id.trainers.size()); }, nullptr},
  {"LOCAL_RANK", "the same as PADDLE_LOCAL_RANK", kCollective, Need::derived,
   [](const Identity& id) -> Text { return std::to_string(id.local_rank); }, nullptr},
  {"LOCAL_WORLD_SIZE", "the same as PADDLE_LOCAL_SIZE", kCollective, Need::derived,
   [](const Identity& id) -> Text { return std::to_string(id.local_size); }, nullptr},
  {"MASTER_ADDR", "host of PADDLE_MASTER", kCollective, Need::derived,
   [](const Identity& id) -> Text { return id.master.host; }, nullptr},
  {"MASTER_PORT", "port of PADDLE_MASTER", kCollective, Need::derived,
   [](const Identity& id) -> Text { return std::to_string(id.master.port); }, nullptr},
  {"GROUP_RANK", "rank of this host", kCollective, Need::derived,
   [](const Identity& id) -> Text { return std::to_string(id.world ? id.world->host_rank : 0); }, nullptr},
  {"GROUP_WORLD_SIZE", "number of hosts of the job", kCollective, Need::derived,
   [](const Identity& id) -> Text { return std::to_string(id.hosts.value_or(1)); }, nullptr},
  {"ROLE_NAME", "value of --role", kCollective, Need::optional,
   [](const Identity& id) -> Text { return id.torch.role_name; },
   [](Identity& id, const std::string& v) { id.torch.role_name = v; }},
  {"ROLE_RANK", "the same as RANK", kCollective, Need::derived,
   [](const Identity& id) -> Text { return std::to_string(id.rank); }, nullptr},
  {"ROLE_WORLD_SIZE", "the same as WORLD_SIZE", kCollective, Need::derived,
   [](const Identity& id) -> Text { return count_text(id.trainers.size()); }, nullptr},
  {"TORCHELASTIC_RESTART_COUNT", "the same as FLEETRUN_ATTEMPT", kCollective, Need::derived,
   [](const Identity&) -> Text { return "0"; }, nullptr},
  {"TORCHELASTIC_MAX_RESTARTS", "value of --max_restart where it was given, or 0", kCollective,
   Need::optional,
   [](const Identity& id) -> Text { return std::to_string(id.torch.max_restarts); },
   [](Identity& id, const std::string& v) { id.torch.max_restarts = parse_count_of(v, 0); }},
  {"TORCHELASTIC_RUN_ID", "value of --rdzv_id, or of --job_id", kCollective, Need::optional,
   [](const Identity& id) -> Text { return id.torch.run_id; },
   [](Identity& id, const std::string& v) { id.torch.run_id = v; }},
  {"TORCHELASTIC_USE_AGENT_STORE", "False: rank 0 opens the store itself", kCollective, Need::derived,
   [](const Identity&) -> Text { return "False"; }, nullptr},
  {"TORCHELASTIC_SIGNALS_TO_HANDLE", "value of --signals_to_handle", kCollective, Need::optional,
   [](const Identity& id) -> Text { return id.torch.signals; },
   [](Identity& id, const std::string& v) { id.torch.signals = v; }},

  // Collective jobs, as TensorFlow reads them.
  {"TF_CONFIG", "the job as TensorFlow's strategies read it, where it has 2 to 1000 trainers", kCollective,
   Need::derived, tensorflow_text, nullptr},

  // Jobs of remote procedure calls.
  {"PADDLE_MASTER_ENDPOINT", "where rank 0 opens the job's store", kRpc, Need::required,
   [](const Identity& id) -> Text { return to_string(id.master); },
   [](Identity& id, const std::string& v) { id.master = parse_endpoint(v); }},
  {"PADDLE_WORKER_ENDPOINT", "where this trainer listens", kRpc, Need::required,
   [](const Identity& id) -> Text { return to_string(self_endpoint(id)); },
   [](Identity& id, const std::string& v) {
     std::vector<Endpoint> trainers = id.trainers;
     if (static_cast<std::size_t>(id.rank) < trainers.size())
       trainers[static_cast<std::size_t>(id.rank)] = parse_endpoint(v);
     id.trainers = std::move(trainers);
   }},

  // Parameter-server jobs.
  {"TRAINING_ROLE", "TRAINER or PSERVER", kPs, Need::derived,
   [](const Identity& id) -> Text { return id.role == Role::server ? "PSERVER" : "TRAINER"; }, nullptr},
  {"PADDLE_ROLE", "the same as TRAINING_ROLE", kPs, Need::derived,
   [](const Identity& id) -> Text { return id.role == Role::server ? "PSERVER" : "TRAINER"; }, nullptr},
  {"POD_IP", "host of this process's endpoint", kPs, Need::derived,
   [](const Identity& id) -> Text { return self_endpoint(id).host; }, nullptr},
  {"PADDLE_PORT", "port of this process's endpoint", kPs, Need::derived,
   [](const Identity& id) -> Text { return self_port(id); }, nullptr},
  {"PADDLE_GLOO_RENDEZVOUS", "3: Gloo meets over HTTP", kPs, Need::derived,
   [](const Identity&) -> Text { return "3"; }, nullptr},
  {"PADDLE_GLOO_HTTP_ENDPOINT", "where server 0 serves Gloo's store", kPs, Need::optional,
   [](const Identity& id) -> Text { return to_string(id.gloo.http); },
   [](Identity& id, const std::string& v) { id.gloo.http = parse_endpoint(v); }},
  {"PADDLE_GLOO_FS_PATH", "a path that nobody else uses", kPs, Need::optional,
   [](const Identity& id) -> Text { return id.gloo.path; },
   [](Identity& id, const std::string& v) { id.gloo.path = v; }},
  {"PADDLE_WITH_GLOO", "0 no Gloo, 1 among the trainers, 2 among all", kPs, Need::optional,
   [](const Identity& id) -> Text { return id.gloo.with_gloo; },
   [](Identity& id, const std::string& v) { id.gloo.with_gloo = v; }},

  // Every process.
  {"PADDLE_NNODES", "number of hosts of the job", kCollective | kPs, Need::optional,
   [](const Identity& id) -> Text { return id.hosts ? Text(std::to_string(*id.hosts)) : std::nullopt; },
   [](Identity& id, const std::string& v) { id.hosts = parse_count_of(v, 1); }},
  {"PADDLE_LOG_DIR", "the same as FLEETRUN_LOG_DIR", kPaddle, Need::optional,
   [](const Identity& id) -> Text { return id.log_dir; },
   [](Identity& id, const std::string& v) { id.log_dir = v; }},
  {"POD_NAME", "the same as FLEETRUN_POD", kPaddle, Need::derived,
   [](const Identity& id) -> Text { return id.pod_name; }, nullptr},
  {"FLEETRUN_JOB_ID", "value of --job_id", kAll, Need::optional,
   [](const Identity& id) -> Text { return id.job_id; },
   [](Identity& id, const std::string& v) { id.job_id = v; }},
  {"FLEETRUN_POD", "name of the pod: the processes of the job on this host", kAll, Need::optional,
   [](const Identity& id) -> Text { return id.pod_name; },
   [](Identity& id, const std::string& v) { id.pod_name = v; }},
  {"FLEETRUN_ROLE", "name of its role: trainer, server, or a job file's own", kAll, Need::optional,
   [](const Identity& id) -> Text { return role_name(id); },
   [](Identity& id, const std::string& v) { if (v != to_string(id.role)) id.own_name = v; }},
  {"FLEETRUN_RANK", "rank within its role, over the whole job", kAll, Need::optional,
   [](const Identity& id) -> Text { return std::to_string(id.rank); },
   [](Identity& id, const std::string& v) { if (id.mode == Mode::own) id.rank = parse_count_of(v, 0); }},
  {"FLEETRUN_SIZE", "number of processes of its role, over the whole job", kAll, Need::optional,
   [](const Identity& id) -> Text { return std::to_string(role_size(id)); },
   [](Identity& id, const std::string& v) { if (id.mode == Mode::own) id.size = parse_count_of(v, 1); }},
  {"FLEETRUN_LOCAL_RANK", "rank within its role on this host", kAll, Need::optional,
   [](const Identity& id) -> Text { return std::to_string(id.local_rank); },
   [](Identity& id, const std::string& v) { id.local_rank = parse_count_of(v, 0); }},
  {"FLEETRUN_ATTEMPT", "how often the job has been started again", kAll, Need::derived,
   [](const Identity&) -> Text { return "0"; }, nullptr},
  {"FLEETRUN_EPOCH", "number of the world: it grows with each change of the job's hosts", kAll,
   Need::optional,
   [](const Identity& id) -> Text {
     return id.world ? Text(std::to_string(id.world->generation)) : std::nullopt;
   },
   [](Identity& id, const std::string& v) {
     world_of(id).generation = static_cast<std::uint64_t>(parse_count_of(v, 0));
   }},
  {"FLEETRUN_NODE_RANK", "rank of this host among the hosts of the job", kAll, Need::optional,
   [](const Identity& id) -> Text {
     return id.world ? Text(std::to_string(id.world->host_rank)) : std::nullopt;
   },
   [](Identity& id, const std::string& v) { world_of(id).host_rank = parse_count_of(v, 0); }},
  {"FLEETRUN_NODES", "number of hosts of the job", kAll, Need::optional,
   [](const Identity& id) -> Text { return id.world ? Text(std::to_string(id.world->hosts)) : std::nullopt; },
   [](Identity& id, const std::string& v) { world_of(id).hosts = parse_count_of(v, 1); }},
  {"FLEETRUN_RUN", "this run of the job, 32 hexadecimal digits", kAll, Need::optional,
   [](const Identity& id) -> Text { return id.world ? Text(id.world->run) : std::nullopt; },
   [](Identity& id, const std::string& v) { world_of(id).run = v; }},
  {"FLEETRUN_WORLD_HASH", "the same on all hosts of one world", kAll, Need::optional,
   [](const Identity& id) -> Text { return id.world ? Text(id.world->hash) : std::nullopt; },
   [](Identity& id, const std::string& v) { world_of(id).hash = v; }},
  {"FLEETRUN_LOG_DIR", "directory of the logs, absolute", kAll, Need::optional,
   [](const Identity& id) -> Text { return id.log_dir; },
   [](Identity& id, const std::string& v) { id.log_dir = v; }},
};
// clang-format on

EnvSection section_of(const Row& row) noexcept {
  const std::string_view name = row.name;
  if (name.starts_with("FLEETRUN_")) return EnvSection::every;
  if (row.who == kRpc) return EnvSection::rpc;
  if ((row.who & ~kPs) == 0) return EnvSection::ps;
  if (row.who != kCollective) return EnvSection::paddle;
  if (name == "TF_CONFIG") return EnvSection::tensorflow;
  const bool is_paddles = name.starts_with("PADDLE_") || name.starts_with("FLAGS_");
  return is_paddles ? EnvSection::collective : EnvSection::torchrun;
}

[[noreturn]] void refuse_missing(std::string_view name) {
  throw Error(ErrorKind::config, std::string(name) + " is not set",
              "start the program with fleetrun, or set the variables of its role");
}

/// A server knows its rank by finding itself in the list: exact text, as scripts for Paddle's role maker do.
int server_rank(const Identity& id, const Environ& environ) {
  const std::string* host = environ.find("POD_IP");
  const std::string* port = environ.find("PADDLE_PORT");
  if (!host) refuse_missing("POD_IP");
  if (!port) refuse_missing("PADDLE_PORT");
  const Endpoint self = {*host, static_cast<std::uint16_t>(parse_count_of(*port, 1))};
  const auto found = std::find(id.servers.begin(), id.servers.end(), self);
  if (found == id.servers.end())
    throw Error(ErrorKind::config,
                "this server's endpoint " + to_string(self) + " is not in PADDLE_PSERVERS_IP_PORT_LIST (" +
                    id.servers.text() + ")",
                "set POD_IP and PADDLE_PORT to one of them");
  return static_cast<int>(found - id.servers.begin());
}

Role role_from(const Environ& environ) {
  const std::string* role = environ.find("TRAINING_ROLE");
  if (!role) refuse_missing("TRAINING_ROLE");
  if (*role == "PSERVER") return Role::server;
  if (*role == "TRAINER") return Role::trainer;
  throw Error(ErrorKind::config, "TRAINING_ROLE is '" + printable(*role) + "'",
              "set it to TRAINER or PSERVER");
}

Mode mode_from(const Environ& environ) {
  if (environ.has("PADDLE_PSERVERS_IP_PORT_LIST")) return Mode::ps;
  if (environ.has("PADDLE_TRAINER_ENDPOINTS")) return Mode::collective;
  if (environ.has("PADDLE_WORKER_ENDPOINT")) return Mode::rpc;
  return environ.has("FLEETRUN_ROLE") ? Mode::own : Mode::collective;
}

}  // namespace

Environ to_environ(const Identity& identity) {
  Environ environ;
  for (const Row& row : kRows) {
    if ((row.who & group_of(identity)) == 0) continue;
    if (auto value = row.write(identity)) environ.set(row.name, std::move(*value));
  }
  return environ;
}

bool is_in_job(const Environ& environ) {
  return environ.has("FLEETRUN_POD");
}

bool is_in_contract(std::string_view name) {
  return std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) { return row.name == name; });
}

std::vector<std::string> foreign_variables(const Identity& identity, bool in_job) {
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    const bool set = (row.who & group_of(identity)) != 0 && row.write(identity);
    if (!set && !is_users(row.name, in_job)) names.emplace_back(row.name);
  }
  const auto own = names.size();
  for (const EnvVariable& variable : other_variables()) {
    const auto stale = split(variable.is_stale ? variable.names : "", ' ');
    names.insert(names.end(), stale.begin(), stale.end());
  }
  std::sort(names.begin() + static_cast<std::ptrdiff_t>(own), names.end());
  return names;
}

Identity identity_from(const Environ& environ) {
  Identity id;
  id.mode = mode_from(environ);
  if (id.mode == Mode::ps) id.role = role_from(environ);
  id.hosts.reset();
  for (const Row& row : kRows) {
    if ((row.who & group_of(id)) == 0 || row.need == Need::derived) continue;
    const std::string* value = environ.find(row.name);
    if (!value && row.need == Need::required) refuse_missing(row.name);
    if (value) while_doing("reading " + std::string(row.name), [&] { row.read(id, *value); });
  }
  if (id.role == Role::server) id.rank = server_rank(id, environ);
  if (id.mode == Mode::own && id.rank >= id.size)
    throw Error(ErrorKind::config, "FLEETRUN_RANK is " + std::to_string(id.rank) + " and FLEETRUN_SIZE is " +
                                       std::to_string(id.size));
  if (id.mode != Mode::own && id.role == Role::trainer &&
      static_cast<std::size_t>(id.rank) >= id.trainers.size())
    throw Error(ErrorKind::config, "PADDLE_TRAINER_ID is " + std::to_string(id.rank) + " and there are " +
                                       count_text(id.trainers.size()) + " trainers");
  return id;
}

std::vector<EnvVariable> env_variables() {
  std::vector<EnvVariable> variables;
  for (const Row& row : kRows) variables.push_back({row.name, section_of(row), row.meaning});
  const auto others = other_variables();
  variables.insert(variables.end(), others.begin(), others.end());
  return variables;
}

}  // namespace fleetrun
