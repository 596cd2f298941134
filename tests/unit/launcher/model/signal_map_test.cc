#include "launcher/model/signal_map.h"

#include <signal.h>

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

SignalRule rule(const char* text, int number) {
  return rule_for(parse_signal_map(text), number, false);
}

Error refusal(const char* text) {
  try {
    parse_signal_map(text);
  } catch (const Error& error) {
    return error;
  }
  FAIL("not refused: ", text);
  throw;
}

}  // namespace

TEST_CASE("by default INT, TERM and HUP stop, QUIT stops with itself, USR1 and USR2 are forwarded") {
  const SignalMap map = default_signal_map();
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    CHECK(rule_for(map, number, false) == SignalRule{SignalAction::stop, 0});
  CHECK(rule_for(map, SIGQUIT, false) == SignalRule{SignalAction::stop, SIGQUIT});
  for (const int number : {SIGUSR1, SIGUSR2})
    CHECK(rule_for(map, number, false) == SignalRule{SignalAction::forward, 0});
  CHECK(rule_for(map, SIGWINCH, false).action == SignalAction::ignore);
  CHECK(signals_of(map, false) == std::vector<int>{SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM});
}

TEST_CASE("a hangup that was inherited as ignored stays ignored unless the user maps it") {
  CHECK(rule_for(default_signal_map(), SIGHUP, true).action == SignalAction::ignore);
  CHECK(signals_of(default_signal_map(), true) ==
        std::vector<int>{SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM});
  CHECK(rule_for(parse_signal_map("HUP=stop"), SIGHUP, true).action == SignalAction::stop);
  CHECK(signals_of(parse_signal_map("HUP=forward"), true).front() == SIGHUP);
}

TEST_CASE("actions are read in every spelling") {
  CHECK(rule("USR1=stop", SIGUSR1) == SignalRule{SignalAction::stop, 0});
  CHECK(rule("USR1=stop:USR2", SIGUSR1) == SignalRule{SignalAction::stop, SIGUSR2});
  CHECK(rule("SIGUSR1=now", SIGUSR1) == SignalRule{SignalAction::now, 0});
  CHECK(rule("usr2=TERM", SIGUSR2) == SignalRule{SignalAction::forward, SIGTERM});
  CHECK(rule("USR1=drain", SIGUSR1) == SignalRule{SignalAction::drain, 0});
  CHECK(rule("TERM=drain:INT", SIGTERM) == SignalRule{SignalAction::drain, SIGINT});
  CHECK(rule("USR2=forward:SIGTERM", SIGUSR2) == SignalRule{SignalAction::forward, SIGTERM});
  CHECK(rule("12=forward:15", SIGUSR2) == SignalRule{SignalAction::forward, SIGTERM});
  CHECK(rule("INT=ignore,TERM=forward", SIGINT).action == SignalAction::ignore);
  CHECK(rule("INT=ignore,TERM=forward", SIGTERM).action == SignalAction::forward);
  CHECK(rule("RTMIN+3=forward", SIGRTMIN + 3).action == SignalAction::forward);
  CHECK(parse_signal_map("") == default_signal_map());
}

TEST_CASE("what is written is read back") {
  for (const char* text : {"", "USR1=stop:QUIT,HUP=ignore", "RTMIN=now,RTMIN+2=TERM,WINCH=forward",
                           "USR1=drain,TERM=drain:INT"}) {
    SignalMap map = parse_signal_map(text);
    SignalMap again = parse_signal_map(to_string(map));
    map.user_hangup = again.user_hangup = false;
    CHECK(again == map);
  }
  CHECK(to_string(default_signal_map()) ==
        "HUP=stop,INT=stop,QUIT=stop:QUIT,USR1=forward,USR2=forward,TERM=stop");
}

TEST_CASE("signal names and numbers are read, and nothing else is") {
  CHECK(parse_signal("USR1") == SIGUSR1);
  CHECK(parse_signal("sigusr1") == SIGUSR1);
  CHECK(parse_signal("9") == SIGKILL);
  CHECK(parse_signal("RTMIN") == SIGRTMIN);
  CHECK(parse_signal("SIGRTMIN+1") == SIGRTMIN + 1);
  for (const char* text : {"", "0", "65", "-1", "SIG", "USR3", "RTMIN+", "RTMIN+99", "RTMINX", "1 ", "TERM "})
    CHECK_MESSAGE(!parse_signal(text), text);
}

TEST_CASE("what cannot be meant is refused with the entry and a hint") {
  CHECK(std::string(refusal("USR3=stop").what()) == "--signal_map: USR3 in USR3=stop is not a signal");
  CHECK(std::string(refusal("USR1").what()) == "--signal_map: USR1 has no '='");
  CHECK(std::string(refusal("USR1=jump").what()) ==
        "--signal_map: jump in USR1=jump is neither an action nor a signal");
  CHECK(std::string(refusal("USR1=now:TERM").what()) ==
        "--signal_map: now:TERM in USR1=now:TERM is neither an action nor a signal");
  CHECK(std::string(refusal("USR1=forward:").what()) == "--signal_map:  in USR1=forward: is not a signal");
  CHECK(std::string(refusal("KILL=stop").what()) ==
        "--signal_map: SIGKILL cannot be mapped: no program can catch it");
  CHECK(std::string(refusal("CHLD=stop").what()) ==
        "--signal_map: SIGCHLD cannot be mapped: fleetrun itself needs it");
  CHECK(std::string(refusal("INT=stop,2=now").what()) == "--signal_map: SIGINT is there twice");
  CHECK(refusal("USR1=jump").hint().starts_with("write SIGNAL=ACTION"));
  CHECK(refusal("INT=stop,2=now").hint() == "give it once");
}
