// Jobs of several hosts that Slurm or Kubernetes has started, or gives the hosts of: launcher/schedulers
// reads what they say. It is asked only where the user says neither where hosts meet nor over which hosts the
// job is spread, nor --nnodes=1.
#include <algorithm>

#include "launcher/config/job_config_values.h"
#include "launcher/model/signal_map.h"
#include "launcher/schedulers/node_file.h"
#include "launcher/schedulers/pod_environment.h"
#include "launcher/schedulers/slurm_allocation.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

std::string count_of(std::size_t hosts) {
  return std::to_string(hosts) + (hosts == 1 ? " host" : " hosts");
}

/// Slurm says with USR1 that the time is almost up (--signal),
/// and with TERM that the hosts are needed (preemption).
void drain_by_default(JobConfig& config) {
  for (const char* signal : {"USR1", "TERM"}) {
    const auto same = [&](const auto& entry) { return parse_signal(entry.first) == parse_signal(signal); };
    if (std::none_of(config.signal_map.begin(), config.signal_map.end(), same))
      config.signal_map.emplace_back(signal, "drain");
  }
}

bool read_slurm(const Values& values, const SlurmAllocation& allocation, JobConfig& config) {
  const SlurmPart part = slurm_part(allocation);
  drain_by_default(config);
  if (allocation.step && allocation.components > 1)
    config.notes.push_back("Slurm job " + allocation.job + " has " + std::to_string(allocation.components) +
                           " components, and this step runs on " + count_of(allocation.hosts.size()) +
                           "; srun --het-group=0-" + std::to_string(allocation.components - 1) +
                           " runs it on all of them");
  if (part == SlurmPart::alone) return false;
  Rendezvous& rendezvous = config.rendezvous;
  const std::size_t hosts = allocation.hosts.size();
  const std::string title = "Slurm job " + allocation.job;
  if (rendezvous.nodes.min > static_cast<int>(hosts))
    refuse(values["nnodes"], title + " has " + count_of(hosts),
           "ask Slurm for more (--nodes), or leave it out");
  if (part == SlurmPart::controller) {
    config.host_list.slurm = true;
    config.notes.push_back(title + " (SLURM_JOB_NODELIST): one agent on each of " + count_of(hosts) +
                           ", through srun");
    return true;
  }
  if (!values.given("nnodes")) rendezvous.nodes = {static_cast<int>(hosts), static_cast<int>(hosts), 1};
  rendezvous.kind = Rendezvous::Kind::master;
  rendezvous.master = {allocation.hosts.front(), slurm_rendezvous_port(allocation)};
  rendezvous.node_name = allocation.hosts[static_cast<std::size_t>(allocation.step->node)];
  if (allocation.step->node < rendezvous.nodes.max) rendezvous.node_rank = allocation.step->node;
  config.notes.push_back(title + ", step " + std::to_string(allocation.step->id) +
                         " (SLURM_STEP_NODELIST): " + count_of(hosts) + ", which meet at " +
                         to_string(rendezvous.master));
  return true;
}

bool read_node_file(const Values& values, const Environ& environ, const NodeFile& file, JobConfig& config) {
  const std::size_t hosts = file.hosts.hosts.size();
  if (hosts == 0)
    config.notes.push_back(file.variable + " names a file that cannot be read here: this host alone runs it");
  if (hosts < 2) return false;
  if (const std::string again = started_several_times(environ); !again.empty())
    throw Error(ErrorKind::usage,
                file.title + " has " + count_of(hosts) + ", and this is one of several fleetruns (" + again +
                    "): each would start the whole job",
                "start fleetrun once, without mpirun; or say where they meet: --nnodes=" +
                    std::to_string(hosts) + " --master=HOST:PORT; or --nnodes=1 for a job of each");
  if (config.rendezvous.nodes.min > static_cast<int>(hosts))
    refuse(values["nnodes"], file.title + " has " + count_of(hosts), "ask it for more, or leave it out");
  config.host_list.node_file = true;
  config.notes.push_back(file.title + " (" + file.variable + "): one agent on each of " + count_of(hosts) +
                         ", over ssh");
  return true;
}

/// In a parameter-server job of an operator, a pod is a server or a trainer.
void settle_part(const Values& values, PodEnvironment::Part part, JobConfig& config) {
  for (const char* key : {"server_num", "trainer_num", "servers", "trainers", "run_mode"}) {
    if (values.given(key)) return;
  }
  if (part == PodEnvironment::Part::any || config.file) return;
  config.mode = Mode::ps;
  config.server_num = part == PodEnvironment::Part::server ? 1 : 0;
  config.trainer_num = part == PodEnvironment::Part::trainer ? config.nproc_per_node.value_or(1) : 0;
}

bool read_pod(const Values& values, const PodEnvironment& pod, JobConfig& config) {
  Rendezvous& rendezvous = config.rendezvous;
  rendezvous.kind = pod.kind;
  rendezvous.master = pod.master;
  rendezvous.master_by_torchrun = pod.master_by_torchrun;
  rendezvous.etcd = pod.etcd;
  rendezvous.nodes = pod.nodes;
  rendezvous.node_rank = pod.node_rank;
  const Value by_pod = {pod.host, "POD_IP", Source::environment};
  if (!pod.host.empty() && !config.host_chosen) {
    config.host = read_host_address(by_pod);
    config.host_chosen = true;
  }
  if (!pod.job_id.empty() && !values.given("job_id"))
    config.job_id = read_file_safe_name({pod.job_id, "PADDLE_ELASTIC_JOB_ID", Source::environment});
  settle_part(values, pod.part, config);
  const std::string where = pod.kind == Rendezvous::Kind::etcd ? "etcd://" + pod.etcd : to_string(pod.master);
  config.notes.push_back("a pod of " + pod.engine + " (" + join(pod.understood, ", ") + "): " +
                         count_of(static_cast<std::size_t>(pod.nodes.max)) + ", which meet at " + where);
  return true;
}

}  // namespace

bool read_engine(const Values& values, const Environ& environ, JobConfig& config) {
  const bool alone = values.given("nnodes") && config.rendezvous.nodes.max == 1;
  if (alone || values.given("hosts") || values.given("hostfile") || is_process_of_a_job(environ))
    return false;
  if (const auto allocation = slurm_allocation(environ)) return read_slurm(values, *allocation, config);
  if (const auto file = node_file(environ)) return read_node_file(values, environ, *file, config);
  const auto asked = values.given("nnodes") ? std::optional(config.rendezvous.nodes) : std::nullopt;
  if (const auto pod = pod_environment(environ, asked)) return read_pod(values, *pod, config);
  if (const std::string again = started_several_times(environ); !again.empty())
    config.notes.push_back(
        "one of several fleetruns (" + again +
        "), each of which runs a job of its own: --nnodes=N --master=HOST:PORT has them meet, "
        "--nnodes=1 says that it is meant");
  return false;
}

void name_pod(const Environ& environ, JobConfig& config) {
  const bool several =
      config.rendezvous.kind != Rendezvous::Kind::none && config.rendezvous.node_name.empty();
  const std::string* name = environ.has("KUBERNETES_SERVICE_HOST") ? environ.find("HOSTNAME") : nullptr;
  if (several && name && !name->empty()) config.rendezvous.node_name = printable(*name, 63);
}

}  // namespace fleetrun::launcher
