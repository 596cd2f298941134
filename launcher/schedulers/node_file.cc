#include "launcher/schedulers/node_file.h"

#include <fstream>
#include <sstream>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

struct Scheduler {
  const char *name, *variable, *job;
  bool counts;  // the second word of a line is the number of slots
};

constexpr Scheduler kSchedulers[] = {
    {"PBS", "PBS_NODEFILE", "PBS_JOBID", false},
    {"LSF", "LSB_DJOB_HOSTFILE", "LSB_JOBID", false},
    {"Grid Engine", "PE_HOSTFILE", "JOB_ID", true},
};

/// As --hosts has it. A name that is there once gets a number too: these files count.
std::string list_in(std::istream& file, const Scheduler& scheduler) {
  std::string list, line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string host, slots = "1";
    if (!(words >> host)) continue;
    if (scheduler.counts) words >> slots;
    list += (list.empty() ? "" : ",") + host + ":slots=" + slots;
  }
  return list;
}

}  // namespace

std::optional<NodeFile> node_file(const Environ& environ) {
  for (const Scheduler& scheduler : kSchedulers) {
    const std::string* path = environ.find(scheduler.variable);
    if (!path || path->empty()) continue;
    std::ifstream file(*path);
    const std::string list = file ? list_in(file, scheduler) : "";
    if (list.empty()) continue;
    const std::string where = std::string(scheduler.variable) + ", " + printable(*path);
    NodeFile found{.title = scheduler.name, .variable = scheduler.variable, .hosts = {}};
    if (const std::string* job = environ.find(scheduler.job)) found.title += " job " + printable(*job, 63);
    found.hosts = parse_host_list(list, where);
    found.hosts.notes.clear();
    return found;
  }
  return std::nullopt;
}

}  // namespace fleetrun::launcher
