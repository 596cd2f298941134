// The variables are sbatch's, salloc's and srun's, as their manual pages list them under OUTPUT ENVIRONMENT
// VARIABLES.
#include "launcher/schedulers/slurm_allocation.h"

#include <algorithm>
#include <set>

#include "launcher/model/host_range.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::int64_t kFirstSpecialStep =
    0xffff'fff0;                            // the batch script, an interactive shell and their like
constexpr std::int64_t kMaxTasks = 65'536;  // on a host
constexpr std::string_view kHint =
    "these variables are Slurm's; `env -u SLURM_JOB_ID fleetrun …` does not look at them";

[[noreturn]] void refuse(std::string_view name, std::string_view text, const std::string& why) {
  throw Error(ErrorKind::config, std::string(name) + " is '" + printable(text) + "': " + why,
              std::string(kHint));
}

/// The first of `names` that is set, with its name.
struct Variable {
  std::string_view name;
  const std::string* text = nullptr;
};

Variable first_of(const Environ& environ, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const std::string* text = environ.find(name)) return {name, text};
  }
  return {};
}

std::optional<std::int64_t> number(const Variable& variable, std::int64_t min, std::int64_t max) {
  if (!variable.text) return std::nullopt;
  const auto value = parse_integer(*variable.text);
  if (!value || *value < min || *value > max)
    refuse(variable.name, *variable.text,
           "a whole number from " + std::to_string(min) + " to " + std::to_string(max) + " is needed");
  return value;
}

bool is_host_name(std::string_view name) noexcept {
  const auto is_alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= 255 && is_alnum(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_alnum(c) || c == '-' || c == '.' || c == '_'; });
}

std::vector<std::string> read_hosts(const Variable& list) {
  const auto hosts =
      while_doing("reading " + std::string(list.name), [&] { return expand_names(*list.text); });
  std::set<std::string_view> seen;
  for (const std::string& host : hosts) {
    if (!is_host_name(host))
      refuse(list.name, *list.text, "'" + printable(host) + "' is not the name of a host");
    if (!seen.insert(host).second) refuse(list.name, *list.text, host + " is in it twice");
  }
  if (hosts.empty()) refuse(list.name, *list.text, "no host is in it");
  return hosts;
}

void check_count(const Variable& count, const Variable& list, std::size_t hosts) {
  const auto value = number(count, 1, static_cast<std::int64_t>(kMaxNamedHosts));
  if (value && static_cast<std::size_t>(*value) != hosts)
    refuse(count.name, *count.text,
           std::string(list.name) + " names " + std::to_string(hosts) + (hosts == 1 ? " host" : " hosts"));
}

std::vector<int> read_tasks(const Variable& tasks, std::size_t hosts) {
  if (!tasks.text) return {};
  auto counts = parse_task_counts(*tasks.text, hosts);
  if (!counts) refuse(tasks.name, *tasks.text, "numbers such as 2(x3),1 are needed");
  if (counts->size() != hosts)
    refuse(tasks.name, *tasks.text,
           "these are " + std::to_string(counts->size()) + " numbers, and there are " +
               std::to_string(hosts) + " hosts");
  return std::move(*counts);
}

/// The number of the step that srun started; nullopt in a batch script, or a shell that Slurm runs as one.
std::optional<std::uint32_t> step_number(const Environ& environ) {
  const auto id = number(first_of(environ, {"SLURM_STEP_ID", "SLURM_STEPID"}), 0, 0xffff'ffff);
  if (!id || *id >= kFirstSpecialStep || !environ.has("SLURM_STEP_NODELIST")) return std::nullopt;
  return static_cast<std::uint32_t>(*id);
}

/// How many components a heterogeneous job has; 1: it is none.
int read_components(const Environ& environ) {
  constexpr std::int64_t kMaxComponents = 128;  // Slurm's own limit
  const auto size = number({"SLURM_HET_SIZE", environ.find("SLURM_HET_SIZE")}, 1, kMaxComponents);
  return static_cast<int>(size.value_or(1));
}

/// Hosts and tasks of all components of a heterogeneous job.
void read_component(const Environ& environ, int component, SlurmAllocation& allocation) {
  const std::string suffix = "_HET_GROUP_" + std::to_string(component);
  const auto find = [&](const std::string& name) {
    const auto found = environ.values().find(name + suffix);
    return found == environ.values().end() ? Variable{} : Variable{found->first, &found->second};
  };
  const Variable list = find("SLURM_JOB_NODELIST");
  if (!list.text)
    throw Error(ErrorKind::config,
                "SLURM_HET_SIZE is " + std::to_string(allocation.components) + ", and SLURM_JOB_NODELIST" +
                    suffix + " is not set: which hosts does component " + std::to_string(component) +
                    " have?",
                std::string(kHint));
  const std::vector<std::string> hosts = read_hosts(list);
  for (const std::string& host : hosts) {
    if (std::find(allocation.hosts.begin(), allocation.hosts.end(), host) != allocation.hosts.end())
      refuse(list.name, *list.text, host + " is in two components, and one agent per host is needed");
  }
  check_count(find("SLURM_JOB_NUM_NODES"), list, hosts.size());
  const bool asked = find("SLURM_NTASKS").text || find("SLURM_NTASKS_PER_NODE").text;
  const auto tasks = asked ? read_tasks(find("SLURM_TASKS_PER_NODE"), hosts.size()) : std::vector<int>();
  if (!tasks.empty()) allocation.tasks.resize(allocation.hosts.size(), 1);
  allocation.tasks.insert(allocation.tasks.end(), tasks.begin(), tasks.end());
  allocation.hosts.insert(allocation.hosts.end(), hosts.begin(), hosts.end());
  if (!allocation.tasks.empty()) allocation.tasks.resize(allocation.hosts.size(), 1);
}

int number_of_this_host(const Environ& environ, std::size_t hosts) {
  if (hosts == 1) return 0;
  const auto node =
      number({"SLURM_NODEID", environ.find("SLURM_NODEID")}, 0, static_cast<std::int64_t>(hosts) - 1);
  if (!node)
    throw Error(ErrorKind::config, "SLURM_STEP_ID is set, and SLURM_NODEID is not: which host is this?",
                std::string(kHint));
  return static_cast<int>(*node);
}

}  // namespace

std::optional<std::vector<int>> parse_task_counts(std::string_view text, std::size_t max) {
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const std::size_t bracket = std::min(part.find("(x"), part.size());
    const auto tasks = parse_integer(std::string_view(part).substr(0, bracket));
    std::optional<std::int64_t> times = 1;
    if (bracket < part.size()) {
      if (!part.ends_with(')')) return std::nullopt;
      times = parse_integer(std::string_view(part).substr(bracket + 2, part.size() - bracket - 3));
    }
    if (!tasks || *tasks < 1 || *tasks > kMaxTasks || !times || *times < 1) return std::nullopt;
    if (static_cast<std::uint64_t>(*times) > max - counts.size()) return std::nullopt;
    counts.insert(counts.end(), static_cast<std::size_t>(*times), static_cast<int>(*tasks));
  }
  if (counts.empty()) return std::nullopt;
  return counts;
}

std::optional<SlurmAllocation> slurm_allocation(const Environ& environ) {
  const Variable job = first_of(environ, {"SLURM_JOB_ID", "SLURM_JOBID"});
  const auto step = step_number(environ);
  const Variable list = step ? Variable{"SLURM_STEP_NODELIST", environ.find("SLURM_STEP_NODELIST")}
                             : first_of(environ, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  SlurmAllocation allocation;
  allocation.components = read_components(environ);
  const bool whole_heterogeneous = !step && allocation.components > 1;
  if (!job.text || (!list.text && !whole_heterogeneous)) return std::nullopt;
  (void)number(job, 1, 0xffff'ffff);
  allocation.job = *job.text;
  allocation.here = environ.value_or("SLURMD_NODENAME", "");
  const auto gpus = number({"SLURM_GPUS_ON_NODE", environ.find("SLURM_GPUS_ON_NODE")}, 0, kMaxTasks);
  allocation.devices = gpus.value_or(0) > 0;
  if (whole_heterogeneous) {
    for (int i = 0; i < allocation.components; ++i) read_component(environ, i, allocation);
    return allocation;
  }
  allocation.hosts = read_hosts(list);
  const std::size_t hosts = allocation.hosts.size();
  if (step) {
    check_count({"SLURM_STEP_NUM_NODES", environ.find("SLURM_STEP_NUM_NODES")}, list, hosts);
    allocation.tasks =
        read_tasks({"SLURM_STEP_TASKS_PER_NODE", environ.find("SLURM_STEP_TASKS_PER_NODE")}, hosts);
    allocation.step = SlurmStep{*step, number_of_this_host(environ, hosts)};
  } else {
    check_count(first_of(environ, {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}), list, hosts);
    // Without a number, Slurm fills this with what would fit: as many tasks as there are cores.
    const bool asked =
        first_of(environ, {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE"}).text != nullptr;
    if (asked)
      allocation.tasks = read_tasks({"SLURM_TASKS_PER_NODE", environ.find("SLURM_TASKS_PER_NODE")}, hosts);
  }
  return allocation;
}

SlurmPart slurm_part(const SlurmAllocation& allocation) {
  if (!allocation.step) {
    const bool only_here = allocation.hosts.size() == 1 && allocation.here == allocation.hosts.front();
    return only_here ? SlurmPart::alone : SlurmPart::controller;
  }
  for (std::size_t i = 0; i < allocation.tasks.size(); ++i) {
    if (allocation.tasks[i] > 1)
      throw Error(ErrorKind::config,
                  "srun started " + std::to_string(allocation.tasks[i]) + " launchers on " +
                      allocation.hosts[i] + ", and one per host is needed",
                  "use srun --ntasks-per-node=1; fleetrun starts the trainers of a host itself, as many as "
                  "--nproc_per_node says");
  }
  return allocation.hosts.size() == 1 ? SlurmPart::alone : SlurmPart::node;
}

std::vector<RemoteHost> slurm_hosts(const SlurmAllocation& allocation) {
  const bool many =
      std::any_of(allocation.tasks.begin(), allocation.tasks.end(), [](int n) { return n > 1; });
  std::vector<RemoteHost> hosts;
  for (std::size_t i = 0; i < allocation.hosts.size(); ++i) {
    RemoteHost host;
    host.name = allocation.hosts[i];
    if (many) host.slots = allocation.tasks[i];  // one is what --ntasks-per-node=1 says: an agent
    host.where = "SLURM_JOB_NODELIST";
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::uint16_t slurm_rendezvous_port(const SlurmAllocation& allocation) noexcept {
  constexpr std::uint64_t kFirst = 20'000, kPorts = 10'000;
  const std::uint64_t job = static_cast<std::uint64_t>(parse_integer(allocation.job).value_or(0));
  const std::uint64_t step = allocation.step ? allocation.step->id : 0;
  return static_cast<std::uint16_t>(kFirst + (job * 37 + step) % kPorts);
}

}  // namespace fleetrun::launcher
