// A job on this host, from its programs to fleetrun's exit status: host, plan, rendezvous, run, report. Who
// is told about the job while it runs is decided here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cluster/world_link.h"
#include "launcher/host/event_command.h"
#include "launcher/host/host_claims.h"
#include "launcher/host/port_lease.h"
#include "launcher/host/python_directory.h"
#include "launcher/host/secret_file.h"
#include "launcher/model/host_facts.h"
#include "launcher/model/job_config.h"
#include "launcher/model/plan.h"
#include "launcher/model/program.h"
#include "launcher/model/world.h"
#include "launcher/record/recorder.h"
#include "launcher/run/server_count.h"
#include "launcher/run/supervisor.h"
#include "launcher/run/world_feed.h"
#include "launcher/session/session_console.h"
#include "launcher/status/detach.h"
#include "launcher/status/job_services.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

class Session {
 public:
  /// `directory`: where fleetrun lies. `environment` and `console` are borrowed.
  Session(JobConfig config, std::vector<Program> programs, const Environ& environment, std::string directory,
          SessionConsole& console);

  /// What would be started, as far as this host knows it before it meets others: what --dry-run shows.
  /// Leases ports.
  Plan first_plan();

  /// Runs `first`, the first plan, to its end, with the other hosts of the job where it has any. Returns
  /// fleetrun's exit status. Throws: Error for whatever is refused before the first process starts.
  int run(Plan first);

 private:
  int meet_and_run();
  std::optional<int> meet();
  int part_with(int exit_status);
  void announce_master();
  int run_here();
  void configure();
  void configure_world();
  RunValues run_values();
  void write_secret(const std::vector<std::string>& directories);
  void settle_terminal(Background background);
  ServiceSettings services(const Background& background, std::shared_ptr<const HeartbeatReader> heartbeats,
                           std::shared_ptr<ServerCount> servers) const;
  JobResult run_to_the_end(std::vector<LogFile> logs);
  int conclude(const JobResult& result);
  RecorderSettings recorder() const;
  void notify(JobNotice notice);
  void end_events();
  std::string write_verdict(const Report& report, const Plan& plan, const JobHistory& history, Moment ended);
  Plan next_plan();
  void adopt(const World& world, std::size_t node_rank);

  JobConfig config_;
  const std::vector<Program> programs_;
  const Environ& environment_;
  const std::string directory_;
  SessionConsole& console_;
  std::string interpreter_;  // of the first program that has one
  PortLeases leases_;
  HostClaims claims_;
  HostFacts facts_;
  std::optional<WorldPlace> place_;  // in a job of several hosts
  PythonDirectory python_;
  SecretFile secret_file_;
  std::optional<WorldLink> link_;    // in a job of several hosts
  std::shared_ptr<WorldFeed> feed_;  // with it
  Plan plan_;                        // of the newest attempt
  Redactor redactor_;                // of what is recorded
  RunSettings settings_;
  std::optional<std::size_t> stdin_of_;   // who has standard input; nullopt: nobody
  std::unique_ptr<EventCommand> events_;  // of --on_event
  std::unique_ptr<SessionPage> page_;     // of --ui
  std::optional<JobNotice> end_;          // what it is told last, once all else is done
};

}  // namespace fleetrun::launcher
