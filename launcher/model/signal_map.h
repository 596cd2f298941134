// What fleetrun does about each signal that it gets: `--signal_map USR1=forward,USR2=TERM,HUP=ignore`.
//
//   action   what happens                                                         written
//   stop     the job stops in order: stop signal, grace, kill; again: killed now  stop, stop:SIGNAL
//   drain    as stop, and fleetrun ends with 75: please start the job again;       drain, drain:SIGNAL
//            a second one changes nothing
//   now      the job is killed at once                                            now
//   forward  every process gets it, or another signal; the job goes on             forward, forward:SIGNAL,
//                                                                                  SIGNAL
//   ignore   nothing                                                              ignore
//
//   signal          unless the user says otherwise
//   INT TERM HUP    stop. A HUP that was inherited as ignored (nohup), or that comes to a detached job, is
//                   ignored; only a user's own HUP=... changes that
//   QUIT            stop:QUIT, so that Ctrl-\ lets each process write what it writes then (stacks, a core)
//   USR1 USR2       forward: what they mean is between the user (or a spot notice) and the script
//   in Slurm        USR1 and TERM are drain: its notice before the end of the time, and a preemption
//
// Signals that are not in the map keep their meaning for the kernel: a changed window (WINCH) does nothing,
// and Ctrl-Z stops fleetrun alone, while the processes, in sessions of their own, go on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fleetrun::launcher {

enum class SignalAction { stop, drain, now, forward, ignore };

/// In the place of the signal that stopped a job: it was drained.
constexpr int kDrained = 0;
/// Exit status of a job that `signal` stopped: 128 + signal, or 75 for kDrained.
constexpr int status_of_stop(int signal) noexcept {
  return signal == kDrained ? 75 : 128 + signal;
}

struct SignalRule {
  SignalAction action = SignalAction::stop;
  /// stop, drain, forward: the signal that the processes get; 0: the role's stop signal, or the same one.
  int as = 0;
  bool operator==(const SignalRule&) const = default;
};

struct SignalMap {
  std::map<int, SignalRule> rules;  // by the signal that fleetrun gets
  bool user_hangup = false;         // the user has said what HUP means
  bool operator==(const SignalMap&) const = default;
};

SignalMap default_signal_map();

/// The default with the user's entries over it.
/// Throws: Error(usage) for an unknown signal or action,
/// and for a signal that cannot be caught or that fleetrun itself needs.
SignalMap parse_signal_map(std::string_view text);

/// The same from entries such as {"USR1", "forward"}.
SignalMap signal_map_of(const std::vector<std::pair<std::string, std::string>>& entries);

/// "HUP=stop,INT=stop,…", as parse_signal_map reads it.
std::string to_string(const SignalMap& map);

/// What to do about `number`: the job was started with hangups ignored,
/// or is detached, when `hangup_ignored`.
SignalRule rule_for(const SignalMap& map, int number, bool hangup_ignored) noexcept;

/// The signals to listen for. An ignored one is among them, since its default would end fleetrun.
std::vector<int> signals_of(const SignalMap& map, bool hangup_ignored);

/// "USR1", "SIGUSR1", "10", "RTMIN+1": a signal's number; nullopt for anything else.
std::optional<int> parse_signal(std::string_view text) noexcept;

/// Whether this process would ignore `number`: what it inherited, until somebody changes it.
bool is_ignored(int number) noexcept;

}  // namespace fleetrun::launcher
