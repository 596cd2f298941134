// --on_event: the user's command, run for each notice of a job, one after another and never in its way.
//
// bash runs it in a session of its own. What has happened is in its environment and, as one line of JSON, on
// its standard input:
//
//   {"schema":1,"event":"failure","job":"night","log_dir":"/data/log","process":"trainer 1",
//    "cause":"crash","why":"exited with 1: ValueError: x","attempt":0}
//
// beside `event` FLEETRUN_EVENT, beside the others FLEETRUN_EVENT_PROCESS and so on. Its output goes to
// fleetrun's standard error. After 10 seconds it is killed; at its end what it has left in its session is.
//
// The thread that runs it begins when its owner says so: it would not outlive a fork() of fleetrun's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launcher/model/job_notice.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

struct EventCommandSettings {
  std::string command;
  std::string job_id, log_dir;
  Environ environment;  // of fleetrun
  /// Called once at most, from the thread: the command has failed. Must not throw.
  std::function<void(const std::string&)> warn;
};

class EventCommand {
 public:
  explicit EventCommand(EventCommandSettings settings);
  /// Kills what still runs.
  ~EventCommand();
  EventCommand(const EventCommand&) = delete;
  EventCommand& operator=(const EventCommand&) = delete;

  /// Starts the thread, which runs what was told before, too.
  void begin();
  /// Returns at once. Of 64 that wait, further ones are dropped.
  void tell(JobNotice notice);
  /// Begins, if that has not been, waits for what was told, 10 seconds at most, and kills the rest.
  void finish();

 private:
  class Runner;
  std::unique_ptr<Runner> runner_;
};

/// Nothing where `settings.command` is empty.
std::unique_ptr<EventCommand> event_command(EventCommandSettings settings);

}  // namespace fleetrun::launcher
