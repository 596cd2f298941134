// What a host of a very large job plans: its pod among HOSTS hosts with SLOTS trainers each. Prints the time,
// the memory, and what the kernel is given for each process (its limit is 128 KiB for one variable).
//
//   hosts_plan_bench [HOSTS [SLOTS]]      10,000 and 8 unless said otherwise

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "launcher/config/make_job_config.h"
#include "launcher/model/host_facts.h"
#include "launcher/model/job_config.h"
#include "launcher/model/plan.h"
#include "launcher/model/program.h"
#include "launcher/model/world.h"
#include "launcher/plan/large_environment.h"
#include "launcher/plan/make_plan.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

World world_of(int hosts, int slots) {
  World world;
  world.generation = 1;
  world.run = std::string(32, 'a');
  for (int i = 0; i < hosts; ++i) {
    Member member;
    member.node = std::string(24, '0') + std::to_string(10'000'000 + i);
    member.name = "node" + std::to_string(i);
    member.pod = "abcdef";
    member.offer.host = "10." + std::to_string(i / 65'536) + "." + std::to_string(i / 256 % 256) + "." +
                        std::to_string(i % 256);
    member.offer.rendezvous = 40'000;
    for (int slot = 0; slot < slots; ++slot)
      member.offer.trainers.push_back(static_cast<std::uint16_t>(41'000 + slot));
    member.first_trainer = i * slots;
    world.members.push_back(std::move(member));
  }
  return world;
}

long peak_kib() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

int main(int argc, char** argv) {
  const int hosts = argc > 1 ? std::atoi(argv[1]) : 10'000, slots = argc > 2 ? std::atoi(argv[2]) : 8;
  Options options;
  options.script = "train.py";
  options.values["nproc_per_node"] = std::to_string(slots);
  const JobConfig config = make_job_config(options, Environ());
  HostFacts facts;
  facts.pod_name = "abcdef";
  const WorldPlace place = {world_of(hosts, slots), static_cast<std::size_t>(hosts) / 2};
  facts.working_directory = "/work";
  const Member& self = place.world.members[place.node_rank];
  std::vector<Endpoint> own;
  for (const std::uint16_t port : self.offer.trainers) own.push_back({self.offer.host, port});
  facts.trainers = own;
  facts.rendezvous = {self.offer.host, self.offer.rendezvous};
  const Program program = {"/usr/bin/python3", {"python3", "-u", "train.py"}, "/usr/bin/python3"};
  const long before = peak_kib();
  const auto start = std::chrono::steady_clock::now();
  const Plan plan = make_plan(config, program, facts, place);
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::size_t max = 0, largest = 0;
  for (const ProcessSpec& process : plan.processes) {
    std::size_t bytes = 0;
    for (const std::string& entry : process.environment.entries()) {
      bytes += entry.size() + 1;
      largest = std::max(largest, entry.size());
    }
    max = std::max(max, bytes);
  }
  check_exec_size(plan, Environ(), max_exec_bytes());
  std::printf("%d hosts with %d trainers each: plan of one host in %.0f ms, %.0f MiB more memory\n", hosts,
              slots, ms, static_cast<double>(peak_kib() - before) / 1024);
  std::printf(
      "environment of a process: %zu bytes, the largest variable %zu; list of endpoints in a file: %zu "
      "bytes\n",
      max, largest, plan.backup ? plan.backup->text.size() : 0);
  return 0;
}
