#include "launcher/host.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/random.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

std::string random_pod_name() {
  unsigned char bytes[6] = {};
  check_errno(::getrandom(bytes, sizeof bytes, 0) == sizeof bytes ? 0 : -1, "getrandom", "naming the pod");
  std::string name;
  for (const unsigned char byte : bytes) name.push_back(static_cast<char>('a' + byte % 26));
  return name;
}

/// /dev/nvidia0, /dev/nvidia1, …: their number without asking a driver.
std::size_t count_device_files() {
  DIR* directory = ::opendir("/dev");
  if (directory == nullptr) return 0;
  std::size_t count = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.starts_with("nvidia") && parse_integer(name.substr(6))) ++count;
  }
  ::closedir(directory);
  return count;
}

void find_devices(const Environ& environ, HostFacts& facts) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "XPU_VISIBLE_DEVICES"}) {
    if (const std::string* visible = environ.find(name)) {
      facts.devices = parse_visible_devices(*visible);
      facts.devices_source = std::string(name) + " (=" + *visible + ")";
      return;
    }
  }
  const std::size_t count = count_device_files();
  for (std::size_t i = 0; i < count; ++i) facts.devices.push_back(std::to_string(i));
  facts.devices_source = "/dev/nvidia*";
}

void lease_named(const Endpoint& endpoint, const char* what, PortLeases& leases) {
  if (leases.lease(endpoint)) return;
  throw Error(
      ErrorKind::host,
      "port " + std::to_string(endpoint.port) + " of " + what + " " + to_string(endpoint) + " is in use",
      "end the program that listens there, or choose another port");
}

/// Leases `count` ports one after the other: from --start_port on where it was given, else any free ones.
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
    lease_named(endpoint, "the job", leases_);
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

void lease_ps_ports(const JobConfig& config, PortLeases& leases, HostFacts& facts) {
  EndpointSource source(config, leases);
  for (const Endpoint& endpoint : config.servers) lease_named(endpoint, "server", leases);
  for (const Endpoint& endpoint : config.trainers) lease_named(endpoint, "trainer", leases);
  facts.servers = config.servers.empty() ? source.take(config.server_num.value_or(1)) : config.servers;
  facts.trainers = config.trainers.empty() ? source.take(config.trainer_num.value_or(1)) : config.trainers;
  if (config.servers.empty() || config.trainers.empty()) {
    facts.meeting = source.take();
    return;
  }
  facts.meeting = {config.servers.front().host, config.gloo_port};
  if (leases.lease(facts.meeting)) return;
  if (config.gloo_port_chosen) lease_named(facts.meeting, "--gloo_port", leases);
  facts.meeting = leases.lease_free(config.servers.front().host);  // nobody asked for the standard port
}

void lease_collective_ports(const JobConfig& config, int trainers, PortLeases& leases, HostFacts& facts) {
  EndpointSource source(config, leases);
  if (config.start_port) {
    facts.trainers = source.take(trainers);
    facts.meeting = facts.trainers.front();
  } else {
    facts.meeting = source.take();
    facts.trainers = source.take(trainers);
  }
}

}  // namespace

std::vector<std::string> parse_visible_devices(const std::string& text) {
  std::vector<std::string> devices = split(text, ',');
  const auto end = std::find_if(devices.begin(), devices.end(),
                                [](const std::string& d) { return d.empty() || d == "-1"; });
  devices.erase(end, devices.end());
  return devices;
}

DevicePlan plan_devices(const JobConfig& config, const std::vector<std::string>& visible,
                        const std::string& source) {
  DevicePlan plan;
  if (config.devices) {
    for (const std::string& device : *config.devices) {
      const auto found = std::find(visible.begin(), visible.end(), device);
      if (found == visible.end())
        throw Error(ErrorKind::host,
                    "device " + printable(device) + " of --devices is not there: " +
                        (visible.empty() ? "this host has no devices"
                                         : "the visible devices are " + join(visible, ",")) +
                        ", says " + source,
                    visible.empty() ? "leave --devices out to run on the CPU" : "name visible devices only");
      plan.indices.push_back(std::to_string(found - visible.begin()));
    }
  } else {
    for (std::size_t i = 0; i < visible.size(); ++i) plan.indices.push_back(std::to_string(i));
  }
  const int devices = static_cast<int>(plan.indices.size());
  plan.trainers = config.nproc_per_node.value_or(std::max(devices, 1));
  if (plan.trainers <= devices || devices == 0) return plan;
  if (config.devices)
    throw Error(
        ErrorKind::host,
        std::to_string(plan.trainers) + " trainers asked for, " + std::to_string(devices) + " devices given",
        "leave --nproc_per_node out, or name more --devices");
  plan.indices
      .clear();  // more trainers than devices, and nobody asked for devices: all of them run on the CPU
  return plan;
}

HostFacts probe_host(const JobConfig& config, const Program& program, const Environ& environ,
                     PortLeases& leases) {
  HostFacts facts;
  facts.pod_name = random_pod_name();
  facts.working_directory = absolute_path("");
  facts.working_directory.pop_back();
  find_devices(environ, facts);
  if (config.mode == Mode::ps)
    lease_ps_ports(config, leases, facts);
  else
    lease_collective_ports(config, plan_devices(config, facts.devices, facts.devices_source).trainers, leases,
                           facts);
  if (config.compat_paddle)
    facts.compat_directory =
        find_compat_directory(program.interpreter, absolute_path(directory_of(config.script)), environ);
  facts.base_path = environ.value_or("PATH", "/usr/local/bin:/usr/bin:/bin");
  facts.base_python_path = environ.value_or("PYTHONPATH", "");
  facts.has_omp_num_threads = environ.has("OMP_NUM_THREADS");
  facts.has_cpu_num = environ.has("CPU_NUM");
  return facts;
}

}  // namespace fleetrun::launcher
