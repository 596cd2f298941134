#include "launcher/host/probe_host.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>

#include "launcher/config/job_file_roles.h"
#include "launcher/host/affinity.h"
#include "launcher/host/find_devices.h"
#include "launcher/host/find_program.h"
#include "launcher/host/read_topology.h"
#include "launcher/host/run_directory.h"
#include "runtime/base/env_contract.h"
#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

// Ports that a server's process holds for the servers of lost hosts, at most.
constexpr int kMaxLosses = 4;

std::string random_pod_name() {
  std::string name = random_bytes(6);
  for (char& letter : name) letter = static_cast<char>('a' + static_cast<unsigned char>(letter) % 26);
  return name;
}

void lease_named(const Endpoint& endpoint, const char* what, PortLeases& leases) {
  if (leases.lease(endpoint)) return;
  throw Error(
      ErrorKind::host,
      "port " + std::to_string(endpoint.port) + " of " + what + " " + to_string(endpoint) + " is in use",
      "end the program that listens there, or choose another port");
}

/// Leases ports one after the other: from the start port on where there is one, else any free ones. A start
/// port that is a default gives way on one host; hosts of one job have to agree on theirs.
class EndpointSource {
 public:
  EndpointSource(const JobConfig& config, PortLeases& leases)
      : config_(config), leases_(leases), next_(config.start_port.value_or(0)) {}

  Endpoint take() {
    if (!config_.start_port) return leases_.lease_free(config_.host);
    if (next_ > 65'535)
      throw Error(ErrorKind::host,
                  "--start_port " + std::to_string(*config_.start_port) + " leaves too few ports for the job",
                  "choose a lower --start_port");
    const Endpoint endpoint = {config_.host, static_cast<std::uint16_t>(next_++)};
    const bool named = config_.start_port_chosen || config_.rendezvous.kind != Rendezvous::Kind::none;
    if (named)
      lease_named(endpoint, "the job", leases_);
    else if (!leases_.lease(endpoint))
      return leases_.lease_free(config_.host);
    return endpoint;
  }

  std::vector<Endpoint> take(int count) {
    std::vector<Endpoint> endpoints;
    for (int i = 0; i < count; ++i) endpoints.push_back(take());
    return endpoints;
  }

 private:
  const JobConfig& config_;
  PortLeases& leases_;
  int next_;
};

void lease_ps_ports(const JobConfig& config, PortLeases& leases, EndpointSource& source, HostFacts& facts) {
  for (const Endpoint& endpoint : config.servers) lease_named(endpoint, "server", leases);
  for (const Endpoint& endpoint : config.trainers) lease_named(endpoint, "trainer", leases);
  facts.servers = config.servers.empty()
                      ? source.take(config.most_servers.value_or(config.server_num.value_or(1)))
                      : config.servers;
  facts.trainers = config.trainers.empty() ? source.take(config.trainer_num.value_or(1)) : config.trainers;
  const bool take_over = config.ps_replicas > 0 && config.rendezvous.kind != Rendezvous::Kind::none;
  const NodeCount& nodes = config.rendezvous.nodes;
  const int losses = std::clamp(nodes.max - nodes.min, 1, kMaxLosses);
  facts.standbys = source.take(take_over ? losses * static_cast<int>(facts.servers.size()) : 0);
  if (config.servers.empty() || config.trainers.empty()) {
    facts.rendezvous = source.take();
    return;
  }
  facts.rendezvous = {config.servers.front().host, config.gloo_port};
  if (leases.lease(facts.rendezvous)) return;
  if (config.gloo_port_chosen) lease_named(facts.rendezvous, "--gloo_port", leases);
  facts.rendezvous = leases.lease_free(config.servers.front().host);  // nobody asked for the standard port
}

/// Whether this host opens the job's store where --master_port says: among several hosts the first one does.
bool opens_store(const JobConfig& config, const Endpoint& store, PortLeases& leases) {
  const Rendezvous& rendezvous = config.rendezvous;
  if (rendezvous.kind == Rendezvous::Kind::none || rendezvous.node_rank == 0) {
    lease_named(store, "--master_port", leases);
    return true;
  }
  return rendezvous.node_rank < 0 && is_this_host(store.host) && leases.lease(store);
}

void lease_collective_ports(const JobConfig& config, int trainers, PortLeases& leases, EndpointSource& source,
                            HostFacts& facts) {
  const std::string& store_host = config.master_addr.empty() ? config.host : config.master_addr;
  if (config.master_port) {
    facts.rendezvous = {store_host, *config.master_port};
    if (!opens_store(config, facts.rendezvous, leases)) facts.rendezvous = leases.lease_free(config.host);
    facts.trainers = source.take(trainers);
  } else if (config.start_port) {
    facts.trainers = source.take(trainers);
    facts.rendezvous = facts.trainers.front();
  } else {
    facts.rendezvous = leases.lease_free(store_host);
    facts.trainers = source.take(trainers);
  }
}

/// What the user gave to something else, and what launchers meet at: a lease on it would keep them all out.
void leave_named_ports_out(const JobConfig& config, PortLeases& leases) {
  leases.leave_out(config.rendezvous.master.port);
  leases.leave_out(config.master_port.value_or(0));
  const std::string metrics = config.metrics.value_or("");
  const auto port = parse_integer(std::string_view(metrics).substr(metrics.rfind(':') + 1));
  if (port && *port > 0 && *port <= 65'535) leases.leave_out(static_cast<std::uint16_t>(*port));
}

void lease_ports(const JobConfig& config, int trainers, PortLeases& leases, HostFacts& facts) {
  EndpointSource source(config, leases);
  if (config.mode == Mode::ps)
    lease_ps_ports(config, leases, source, facts);
  else if (config.mode != Mode::own)
    lease_collective_ports(config, trainers, leases, source, facts);
  facts.endpoints.clear();
  if (!config.file) return;
  for (const JobFileRole& role : config.file->roles) {
    if (has_endpoints(role)) facts.endpoints[role.name] = source.take(count_of(role));
  }
}

/// All processes that the job starts on this host.
std::size_t process_count(const JobConfig& config, const HostFacts& facts) {
  std::size_t count = facts.servers.size() + facts.trainers.size();
  if (!config.file) return count;
  for (const JobFileRole& role : config.file->roles)
    count += role.kind == RoleKind::plain ? static_cast<std::size_t>(count_of(role)) : 0;
  return count;
}

/// The first 64 KiB of a file; "" when it cannot be read.
std::string beginning_of(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(fd ? 64 << 10 : 0, 0);
  const ssize_t count = fd ? ::read(fd.value(), text.data(), text.size()) : 0;
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

/// Whether the servers run a script that imports fleetrun.
bool runs_own_servers(const JobConfig& config, const std::vector<Program>& programs) {
  if (config.mode != Mode::ps) return false;
  std::string script = config.script;
  const Program* program = &programs.front();
  for (std::size_t i = 0; config.file && i < config.file->roles.size(); ++i) {
    if (config.file->roles[i].kind != RoleKind::server) continue;
    script = script_path(config.file->roles[i]);
    program = &programs[i];
  }
  return !program->interpreter.empty() && (config.compat_paddle || imports_fleetrun(beginning_of(script)));
}

/// Where --compat finds its modules, asked from the first interpreter that the job uses.
std::string compat_directory(const JobConfig& config, const std::vector<Program>& programs,
                             const Environ& environ) {
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const std::string script = config.file ? script_path(config.file->roles[i]) : config.script;
    if (!programs[i].interpreter.empty())
      return find_compat_directory(programs[i].interpreter, absolute_path(directory_of(script)), environ);
  }
  return find_compat_directory("", absolute_path(directory_of(config.script)), environ);
}

/// The cores that no other job is pinned to; none, with a note, where these are too few.
std::optional<Topology> free_topology(const JobConfig& config, HostFacts& facts, std::size_t processes,
                                      const HostClaims& claims) {
  std::vector<std::string> pci;
  for (const DeviceFile& file : facts.devices.files) pci.push_back(file.pci);
  const Topology all = topology_for_binding(facts.cpus, pci);
  Topology free = without_held(all, claims.held());
  const std::size_t needed = config.bind == Bind::core ? std::min(processes, all.cores.size()) : 1;
  if (free.cores.size() >= std::min(needed, all.cores.size())) return free;
  facts.notes.push_back("--bind=" + std::string(to_string(config.bind)) + ": " +
                        std::to_string(all.cores.size() - free.cores.size()) + " of " +
                        std::to_string(all.cores.size()) +
                        " cores are pinned by other jobs (fleetrun list), so nothing is bound");
  return std::nullopt;
}

/// Ports, devices and cores. What other jobs hold is looked up only where this one is going to take some.
void take_parts(const JobConfig& config, const Environ& environ, PortLeases& leases, HostClaims& claims,
                HostFacts& facts) {
  // torchrun gives no devices out: its scripts take cuda:LOCAL_RANK.
  const bool devices = config.mode == Mode::collective && !config.torchrun &&
                       (facts.devices.unknown || !facts.devices.tokens.empty());
  if (devices || binds(config.bind, facts.cpus, 2))
    claims = HostClaims(run_directories(environ, ::geteuid()));
  if (devices) facts.devices.held = claims.held();
  const DevicePlan plan = config.mode == Mode::ps ? DevicePlan() : device_plan(config, facts);
  std::set<std::string> taken;
  if (devices) taken.insert(plan.keys.begin(), plan.keys.end());
  lease_ports(config, plan.trainers, leases, facts);
  if (const std::size_t processes = process_count(config, facts); binds(config.bind, facts.cpus, processes))
    facts.topology = free_topology(config, facts, processes, claims);
  if (facts.topology && config.bind == Bind::core) taken.merge(core_keys(*facts.topology));
  claims.hold(facts.pod_name, taken);
}

}  // namespace

HostFacts renew_ports(const JobConfig& config, HostFacts facts, PortLeases& leases) {
  for (const Endpoint& endpoint : facts.servers) leases.give_up(endpoint);
  for (const Endpoint& endpoint : facts.trainers) leases.give_up(endpoint);
  for (const Endpoint& endpoint : facts.standbys) leases.give_up(endpoint);
  for (const auto& [role, endpoints] : facts.endpoints) {
    for (const Endpoint& endpoint : endpoints) leases.give_up(endpoint);
  }
  leases.give_up(facts.rendezvous);
  lease_ports(config, static_cast<int>(facts.trainers.size()), leases, facts);
  return facts;
}

std::string interface_of(const std::string& address) {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, ::freeifaddrs);
  for (const ifaddrs* one = found; one; one = one->ifa_next) {
    if (!one->ifa_addr || (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6))
      continue;
    const socklen_t length = one->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    char text[NI_MAXHOST] = {};
    if (::getnameinfo(one->ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 &&
        address == text)
      return one->ifa_name;
  }
  return {};
}

PodOffer offer_of(const JobConfig& config, const HostFacts& facts) {
  PodOffer offer;
  offer.host = config.host;
  for (const Endpoint& endpoint : facts.trainers) offer.trainers.push_back(endpoint.port);
  for (const Endpoint& endpoint : facts.servers) offer.servers.push_back(endpoint.port);
  if (facts.own_servers)
    for (const Endpoint& endpoint : facts.standbys) offer.standbys.push_back(endpoint.port);
  offer.rendezvous = facts.rendezvous.port;
  return offer;
}

bool imports_fleetrun(const std::string& program_text) {
  for (const std::string& line : split(program_text, '\n')) {
    std::string_view rest = line;
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    for (const std::string_view start : {"import fleetrun", "from fleetrun"}) {
      if (!rest.starts_with(start)) continue;
      const char next = rest.size() > start.size() ? rest[start.size()] : ' ';
      if (next != '_' && !std::isalnum(static_cast<unsigned char>(next))) return true;
    }
  }
  return false;
}

DevicePlan device_plan(const JobConfig& config, const HostFacts& facts) {
  const int cpus = std::max(1, static_cast<int>(facts.cpus.allowed.size()));
  if (config.trainers_by == TrainersBy::cpu)
    return {.trainers = cpus, .processes = {}, .keys = {}, .notes = {}};
  DevicePlan plan = plan_devices({config.devices, config.nproc_per_node}, facts.devices);
  if (!plan.processes.empty() || config.trainers_by == TrainersBy::number) return plan;
  if (config.trainers_by == TrainersBy::gpu)
    throw Error(ErrorKind::host,
                "--nproc_per_node=gpu, but this host has no devices, says " + facts.devices.source,
                "use --nproc_per_node=auto, or a number");
  plan.trainers = cpus;
  return plan;
}

HostFacts probe_host(const JobConfig& config, const std::vector<Program>& programs, const Environ& environ,
                     PortLeases& leases, HostClaims& claims) {
  HostFacts facts;
  facts.pod_name = random_pod_name();
  facts.working_directory = absolute_path("");
  facts.working_directory.pop_back();
  facts.host_name = host_name();
  if (config.port_range) leases.set_range(config.port_range->first, config.port_range->second);
  leave_named_ports_out(config, leases);
  facts.devices = visible_devices(environ, read_device_files(""), config.device_flag);
  facts.cpus = read_cpu_facts("");
  take_parts(config, environ, leases, claims, facts);
  facts.own_servers = runs_own_servers(config, programs);
  if (config.compat_paddle) facts.compat_directory = compat_directory(config, programs, environ);
  facts.base_path = environ.value_or("PATH", "/usr/local/bin:/usr/bin:/bin");
  facts.base_python_path = environ.value_or("PYTHONPATH", "");
  facts.has_omp_num_threads = environ.has("OMP_NUM_THREADS");
  facts.has_cpu_num = environ.has("CPU_NUM");
  facts.is_in_job = is_in_job(environ);
  facts.has_nccl_error_handling = environ.has("TORCH_NCCL_ASYNC_ERROR_HANDLING");
  if (config.rendezvous.kind != Rendezvous::Kind::none && config.mode == Mode::collective) {
    const std::string interface = interface_of(config.host);
    if (!interface.empty() && !environ.has("GLOO_SOCKET_IFNAME"))
      facts.socket_interfaces.push_back("GLOO_SOCKET_IFNAME=" + interface);
    if (!interface.empty() && !environ.has("NCCL_SOCKET_IFNAME"))
      facts.socket_interfaces.push_back("NCCL_SOCKET_IFNAME==" +
                                        interface);  // the second '=': this one exactly
  }
  return facts;
}

}  // namespace fleetrun::launcher
