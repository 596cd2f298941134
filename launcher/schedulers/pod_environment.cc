#include "launcher/schedulers/pod_environment.h"

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::uint16_t kRendezvousPort = 6768;  // Paddle's, where only addresses are given
constexpr int kMaxPods = 65'536;

[[noreturn]] void refuse(std::string_view name, std::string_view text, const std::string& why) {
  throw Error(ErrorKind::config, std::string(name) + " is '" + printable(text) + "': " + why,
              "--nnodes=1 starts on this host alone, and --master with --nnodes and --rank says it all");
}

/// Reads variables and remembers which.
class Reader {
 public:
  explicit Reader(const Environ& environ) : environ_(environ) {}

  const std::string* find(const std::string& name) {
    const std::string* text = environ_.find(name);
    if (!text || text->empty()) return nullptr;
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
    return text;
  }

  std::optional<int> number(const std::string& name, int min = 0) {
    const std::string* text = find(name);
    if (!text) return std::nullopt;
    const auto value = parse_integer(*text);
    if (!value || *value < min || *value > kMaxPods)
      refuse(name, *text, "a whole number from " + std::to_string(min) + " is needed");
    return static_cast<int>(*value);
  }

  std::vector<std::string> take_names() { return std::move(names_); }
  const Environ& environ() const { return environ_; }

 private:
  const Environ& environ_;
  std::vector<std::string> names_;
};

bool is_host_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 255 && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                  c == '.' || c == '_' || c == ':';
         });
}

std::vector<std::string> host_list(std::string_view name, const std::string& text) {
  std::vector<std::string> hosts = split(text, ',');
  for (const std::string& host : hosts) {
    if (!is_host_name(host))
      refuse(name, text, "'" + printable(host) + "' is not the name or address of a host");
  }
  if (hosts.size() > static_cast<std::size_t>(kMaxPods)) refuse(name, text, "these are too many hosts");
  return hosts;
}

PodEnvironment rendezvous_at(std::string engine, std::string host, std::size_t pods, std::size_t rank) {
  PodEnvironment pod;
  pod.engine = std::move(engine);
  pod.master = {std::move(host), kRendezvousPort};
  pod.nodes = {static_cast<int>(pods), static_cast<int>(pods), 1};
  pod.node_rank = static_cast<int>(rank);
  return pod;
}

// PaddleJob

std::optional<NodeCount> node_count(const std::string& text) {
  NodeCount count;
  const std::vector<std::string> parts = split(text, ':');
  if (parts.empty() || parts.size() > 2) return std::nullopt;
  const auto min = parse_integer(parts.front()), max = parse_integer(parts.back());
  if (!min || !max || *min < 1 || *min > *max || *max > kMaxPods) return std::nullopt;
  count.min = static_cast<int>(*min);
  count.max = static_cast<int>(*max);
  return count;
}

std::optional<PodEnvironment> elastic_paddle_job(Reader& reader) {
  const std::string* server = reader.find("PADDLE_ELASTIC_SERVER");
  const std::string* pods = reader.find("PADDLE_ELASTIC_NP");
  const std::string* job = reader.find("PADDLE_ELASTIC_JOB_ID");
  if (!server || !pods || !job) return std::nullopt;
  const auto count = node_count(*pods);
  if (!count) refuse("PADDLE_ELASTIC_NP", *pods, "a number of pods or MIN:MAX is needed");
  PodEnvironment pod;
  pod.engine = "an elastic PaddleJob";
  pod.kind = Rendezvous::Kind::etcd;
  pod.etcd = *server;
  pod.job_id = *job;
  pod.nodes = *count;
  if (const std::string* address = reader.find("POD_IP")) pod.host = *address;
  return pod;
}

/// Servers first, then trainers: the first server is there as long as the job is.
std::optional<PodEnvironment> paddle_job(Reader& reader) {
  const std::string* trainers = reader.find("PADDLE_TRAINERS");
  const std::string* address = reader.find("POD_IP");
  if (!trainers || !address) return std::nullopt;     // what is wrong with the others is nobody's business
  if (parse_integer(*trainers)) return std::nullopt;  // how many there are, as scripts of Paddle 1.x say it
  const auto id = reader.number("PADDLE_TRAINER_ID");
  if (!id) return std::nullopt;
  std::vector<std::string> hosts;
  if (const std::string* servers = reader.find("PADDLE_PSERVERS_IP_PORT_LIST")) {
    for (const std::string& endpoint : split(*servers, ','))
      hosts.push_back(endpoint.substr(0, endpoint.rfind(':')));
    (void)host_list("PADDLE_PSERVERS_IP_PORT_LIST", join(hosts, ","));
  }
  const std::size_t servers = hosts.size();
  const std::vector<std::string> others = host_list("PADDLE_TRAINERS", *trainers);
  hosts.insert(hosts.end(), others.begin(), others.end());
  if (const auto said = reader.number("PADDLE_TRAINERS_NUM", 1);
      said && *said != static_cast<int>(others.size()))
    refuse("PADDLE_TRAINERS_NUM", std::to_string(*said),
           "PADDLE_TRAINERS names " + std::to_string(others.size()));
  const std::string* role = reader.find("TRAINING_ROLE");  // Paddle 1.x has none on hosts that only train
  const bool serves = role && *role == "PSERVER";
  if (role && !serves && *role != "TRAINER") refuse("TRAINING_ROLE", *role, "PSERVER or TRAINER is needed");
  const std::size_t rank = (serves ? 0 : servers) + static_cast<std::size_t>(*id);
  if (static_cast<std::size_t>(*id) >= (serves ? servers : others.size()))
    refuse("PADDLE_TRAINER_ID", std::to_string(*id), "there are fewer pods of this role");
  if (hosts.size() < 2) return std::nullopt;
  PodEnvironment pod = rendezvous_at("a PaddleJob", hosts.front(), hosts.size(), rank);
  if (const auto port = reader.number("PADDLE_PORT", 1); port && *port <= 65'535)
    pod.master.port = static_cast<std::uint16_t>(*port);
  pod.host = *address;
  if (servers > 0) pod.part = serves ? PodEnvironment::Part::server : PodEnvironment::Part::trainer;
  return pod;
}

// Volcano

struct Task {
  std::string name;  // as it is in the variables
  std::vector<std::string> hosts;
};

PodEnvironment::Part part_of(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  for (const char* server : {"ps", "pserver", "pservers", "server", "servers"}) {
    if (name == server) return PodEnvironment::Part::server;
  }
  for (const char* trainer : {"master", "chief", "worker", "workers", "trainer", "trainers"}) {
    if (name == trainer) return PodEnvironment::Part::trainer;
  }
  return PodEnvironment::Part::any;
}

/// Servers, then the master, then the others. Tasks of other names do not take part,
/// unless there is one only.
std::vector<Task> volcano_tasks(Reader& reader) {
  std::map<std::pair<int, std::string>, Task> found;
  for (const auto& [name, text] : reader.environ().values()) {
    if (!name.starts_with("VC_") || !name.ends_with("_HOSTS") || name.size() < 10) continue;
    Task task{name.substr(3, name.size() - 9), host_list(name, text)};
    if (const auto number = reader.number("VC_" + task.name + "_NUM");
        number && static_cast<std::size_t>(*number) != task.hosts.size())
      refuse("VC_" + task.name + "_NUM", std::to_string(*number),
             name + " names " + std::to_string(task.hosts.size()));
    (void)reader.find(name);
    const PodEnvironment::Part part = part_of(task.name);
    const bool first = task.name == "MASTER" || task.name == "CHIEF";
    const int place = part == PodEnvironment::Part::any      ? 3
                      : part == PodEnvironment::Part::server ? 0
                      : first                                ? 1
                                                             : 2;
    found.emplace(std::pair(place, task.name), std::move(task));
  }
  std::vector<Task> tasks;
  const bool lone = found.size() == 1;
  for (auto& [place, task] : found) {
    if (lone || place.first < 3) tasks.push_back(std::move(task));
  }
  return tasks;
}

std::optional<PodEnvironment> volcano(Reader& reader) {
  const auto index = reader.number("VC_TASK_INDEX");
  const std::string* own = reader.find("HOSTNAME");
  if (!index || !own) return std::nullopt;
  const std::vector<Task> tasks = volcano_tasks(reader);
  const bool serves = !tasks.empty() && part_of(tasks.front().name) == PodEnvironment::Part::server;
  std::size_t pods = 0;
  std::optional<std::size_t> rank;
  PodEnvironment::Part part = PodEnvironment::Part::any;
  for (const Task& task : tasks) {
    const auto place = static_cast<std::size_t>(*index);
    if (place < task.hosts.size() &&
        (task.hosts[place] == *own || task.hosts[place].starts_with(*own + "."))) {
      rank = pods + place;
      part = part_of(task.name);
    }
    pods += task.hosts.size();
  }
  if (!rank || pods < 2) return std::nullopt;
  PodEnvironment pod = rendezvous_at("Volcano", tasks.front().hosts.front(), pods, *rank);
  if (serves) pod.part = part;
  return pod;
}

// Kubernetes' own jobs

/// A pod of a job is called JOB-INDEX.
std::optional<std::string> job_of(const std::string& pod, int index) {
  const std::string end = "-" + std::to_string(index);
  if (!pod.ends_with(end) || pod.size() == end.size()) return std::nullopt;
  return pod.substr(0, pod.size() - end.size());
}

std::optional<PodEnvironment> indexed_job(Reader& reader, std::optional<NodeCount> asked) {
  const auto index = reader.number("JOB_COMPLETION_INDEX");
  const std::string* own = reader.find("HOSTNAME");
  if (!index || !own || !asked || asked->max < 2) return std::nullopt;
  const std::string* set = reader.find("JOBSET_NAME");
  const std::string* replicated = set ? reader.find("REPLICATED_JOB_NAME") : nullptr;
  const auto check = [&](int rank) {
    if (rank >= asked->max)
      refuse("JOB_COMPLETION_INDEX", std::to_string(*index),
             "the job has " + std::to_string(asked->max) + " pods (--nnodes)");
  };
  PodEnvironment pod;
  if (set && replicated) {
    const int replicas = reader.number("REPLICATED_JOB_REPLICAS", 1).value_or(1);
    const int job = reader.number("JOB_INDEX").value_or(0);
    if (asked->max % replicas != 0)
      refuse("REPLICATED_JOB_REPLICAS", std::to_string(replicas),
             std::to_string(asked->max) + " pods (--nnodes) are not a multiple");
    const int rank = job * (asked->max / replicas) + *index;
    check(rank);
    pod = rendezvous_at("a JobSet", *set + "-" + *replicated + "-0-0." + *set, 1,
                        static_cast<std::size_t>(rank));
  } else {
    const auto job = job_of(*own, *index);
    if (!job) return std::nullopt;
    check(*index);
    pod = rendezvous_at("an Indexed Job", *job + "-0." + *job, 1, static_cast<std::size_t>(*index));
  }
  pod.nodes = *asked;
  return pod;
}

std::optional<PodEnvironment> pytorch_job(Reader& reader, std::optional<NodeCount> asked) {
  const std::string* address = reader.find("MASTER_ADDR");
  const auto port = reader.number("MASTER_PORT", 1);
  const auto size = reader.number("WORLD_SIZE", 1);
  const auto rank = reader.number("RANK");
  if (!address || !port || !size || !rank) return std::nullopt;
  const NodeCount nodes = asked.value_or(NodeCount{*size, *size, 1});
  if (nodes.max < 2) return std::nullopt;
  if (*rank >= nodes.max)
    refuse("RANK", std::to_string(*rank), "the job has " + std::to_string(nodes.max) + " pods");
  if (*port >= 65'535)
    refuse("MASTER_PORT", std::to_string(*port), "the rendezvous needs the port above it, and there is none");
  if (!is_host_name(*address)) refuse("MASTER_ADDR", *address, "it is not the name or address of a host");
  PodEnvironment pod = rendezvous_at("a PyTorchJob", *address, 1, static_cast<std::size_t>(*rank));
  // The operator tells its first pod to listen on loopback, which the others cannot reach.
  const bool loopback = *address == "localhost" || *address == "127.0.0.1";
  if (const std::string* own = loopback && *rank == 0 ? reader.find("HOSTNAME") : nullptr)
    pod.master.host = *own;
  pod.master.port = static_cast<std::uint16_t>(*port + 1);
  pod.master_by_torchrun = true;
  pod.nodes = nodes;
  return pod;
}

}  // namespace

bool is_process_of_a_job(const Environ& environ) {
  for (const char* name : {"FLEETRUN_RANK", "LOCAL_RANK", "TORCHELASTIC_RUN_ID", "PADDLE_CURRENT_ENDPOINT",
                           "PADDLE_LOCAL_RANK"}) {
    if (environ.has(name)) return true;
  }
  return false;
}

std::optional<PodEnvironment> pod_environment(const Environ& environ, std::optional<NodeCount> asked) {
  if (is_process_of_a_job(environ) || (asked && asked->max == 1)) return std::nullopt;
  const auto understand = [&](auto read) {
    Reader reader(environ);
    std::optional<PodEnvironment> pod = read(reader);
    if (pod) pod->understood = reader.take_names();
    return pod;
  };
  auto pod = understand(elastic_paddle_job);
  if (!pod) pod = understand(paddle_job);
  if (!pod) pod = understand(volcano);
  if (environ.has("KUBERNETES_SERVICE_HOST")) {
    if (!pod) pod = understand([&](Reader& reader) { return indexed_job(reader, asked); });
    if (!pod) pod = understand([&](Reader& reader) { return pytorch_job(reader, asked); });
  }
  return pod;
}

}  // namespace fleetrun::launcher
