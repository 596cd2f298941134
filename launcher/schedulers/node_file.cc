#include "launcher/schedulers/node_file.h"

#include <fstream>
#include <sstream>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

enum class Form {
  lines,     // of a file: a host a line
  counted,   // the second word of a line is the number of slots
  hostfile,  // as --hostfile has it
  words,     // of the variable itself: a host a word
  pairs,     // hosts and numbers
};

struct Scheduler {
  const char *name, *variable, *job;
  Form form;
  const char* ssh = "";
};

constexpr Scheduler kSchedulers[] = {
    {"PBS", "PBS_NODEFILE", "PBS_JOBID", Form::lines},
    {"OAR", "OAR_NODEFILE", "OAR_JOB_ID", Form::lines, "oarsh"},
    {"LSF", "LSB_DJOB_HOSTFILE", "LSB_JOBID", Form::lines},
    {"LSF", "LSB_MCPU_HOSTS", "LSB_JOBID", Form::pairs},
    {"LSF", "LSB_HOSTS", "LSB_JOBID", Form::words},
    {"Grid Engine", "PE_HOSTFILE", "JOB_ID", Form::counted},
    {"Open MPI", "PRTE_MCA_prte_default_hostfile", "", Form::hostfile},
    {"Open MPI", "OMPI_MCA_orte_default_hostfile", "", Form::hostfile},
    {"Intel MPI", "I_MPI_HYDRA_HOST_FILE", "", Form::hostfile},
    {"MPICH", "HYDRA_HOST_FILE", "", Form::hostfile},
};

void add(std::string& list, const std::string& host, const std::string& slots) {
  list += (list.empty() ? "" : ",") + host + ":slots=" + slots;
}

/// As --hosts has it. A name that is there once gets a number too: these files count.
std::string list_in(std::istream& text, Form form) {
  std::string list, host, line, slots = "1";
  if (form == Form::words || form == Form::pairs) {
    while (text >> host && (form == Form::words || text >> slots)) add(list, host, slots);
    return list;
  }
  while (std::getline(text, line)) {
    std::istringstream words(line);
    if (!(words >> host)) continue;
    slots = "1";
    if (form == Form::counted) words >> slots;
    add(list, host, slots);
  }
  return list;
}

RemoteHosts hosts_of(const Scheduler& scheduler, const std::string& value) {
  if (scheduler.form == Form::words || scheduler.form == Form::pairs) {
    std::istringstream text(value);
    return parse_host_list(list_in(text, scheduler.form), scheduler.variable);
  }
  std::ifstream file(value);
  if (!file) return {};
  if (scheduler.form == Form::hostfile) return read_hostfile(value);
  const std::string list = list_in(file, scheduler.form);
  return list.empty() ? RemoteHosts() : parse_host_list(list, std::string(scheduler.variable) + ", " + value);
}

}  // namespace

std::optional<NodeFile> node_file(const Environ& environ) {
  std::optional<NodeFile> unreadable;
  for (const Scheduler& scheduler : kSchedulers) {
    const std::string* value = environ.find(scheduler.variable);
    if (!value || value->empty()) continue;
    NodeFile found{
        .title = scheduler.name, .variable = scheduler.variable, .hosts = {}, .ssh = scheduler.ssh};
    if (const std::string* job = environ.find(scheduler.job)) found.title += " job " + printable(*job, 63);
    found.hosts = hosts_of(scheduler, *value);
    if (scheduler.form != Form::hostfile) found.hosts.notes.clear();
    if (!found.hosts.hosts.empty()) return found;
    if (!unreadable) unreadable = std::move(found);
  }
  return unreadable;
}

std::string started_several_times(const Environ& environ) {
  for (const char* size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "HOROVOD_SIZE"}) {
    const std::string* value = environ.find(size);
    if (value && !value->empty() && *value != "1") return std::string(size) + " is " + printable(*value, 20);
  }
  const std::string* node = environ.find("PBS_NODENUM");  // of pbsdsh; 0 where the job's script runs, too
  if (node && !node->empty() && *node != "0") return "PBS_NODENUM is " + printable(*node, 20);
  return "";
}

}  // namespace fleetrun::launcher
