// Events of a job as sentences for people: the LAUNCH lines, and what `fleetrun attach` shows.
//
// It remembers the pids, so that a stop can name whom it waits for: "waiting up to 30 s for trainer 0 (pid
// 4711) and trainer 3 (pid 4714); a second signal kills at once". Events that nobody has to be told about
// have no sentence. No clock, no files.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launcher/model/job_config.h"
#include "launcher/model/job_event.h"
#include "launcher/model/plan.h"

namespace fleetrun::launcher {

struct Sentence {
  LogLevel level = LogLevel::info;
  std::string text;  // empty: nothing to say; may have several lines
  bool operator==(const Sentence&) const = default;
};

/// "epoch 2: 3 hosts (h1, h2, h4), 6 trainers, attempt 1"
std::string to_string(const event::WorldBegan& began);

class EventText {
 public:
  /// `plan` outlives it.
  explicit EventText(const Plan& plan) : plan_(plan), pids_(plan.processes.size(), -1) {}

  /// What to say about `event`. Every event of the job has to be told, in order.
  Sentence on(const JobEvent& event);

 private:
  Sentence say(const event::Contained& contained);
  Sentence say(const event::ProcessStarted& started);
  Sentence say(const event::ProcessExited& exited);
  Sentence say(const event::ProcessNotStarted& failed);
  Sentence say(const event::AllRunning& running);
  Sentence say(const event::GenerationBegan& began);
  Sentence say(const event::RoleReady& ready);
  Sentence say(const event::StopBegan& stop);
  Sentence say(const event::GraceElapsed& elapsed);
  Sentence say(const event::FailureExplained& explained);
  Sentence say(const event::RestartDecided& decided);
  Sentence say(const event::GaveUp& gave_up);
  Sentence say(const event::SignalReceived& received);
  Sentence say(const event::SignalForwarded& forwarded);
  Sentence say(const event::HangFound& hang);
  Sentence say(const event::Injected& injected);
  Sentence say(const event::Unkillable& unkillable);
  Sentence say(const event::Warning& warning);
  Sentence say(const event::WorldBegan& began);
  Sentence say(const event::WorldEnded& ended);
  Sentence say(const event::ServersMove& move);
  Sentence say(const event::PodStands& stands);
  Sentence say(const event::News& news);
  Sentence say(const event::JobEnded& ended);
  template <class Other>
  Sentence say(const Other&) {
    return {};
  }

  /// "trainer 0 (pid 4711), trainer 3 (pid 4714) and 12 others"
  std::string names(const std::vector<std::size_t>& processes) const;

  const Plan& plan_;
  std::vector<pid_t> pids_;
};

}  // namespace fleetrun::launcher
