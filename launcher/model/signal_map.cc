#include "launcher/model/signal_map.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <cctype>

#include "runtime/base/error.h"
#include "runtime/base/exit_reason.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr const char* kHint =
    "write SIGNAL=ACTION,…: USR1=forward, USR2=TERM (forwarded as TERM), HUP=ignore, TERM=stop, USR1=drain, "
    "QUIT=stop:QUIT, "
    "INT=now";

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

/// "USR1": without the "SIG" of signal_name().
std::string short_name(int number) {
  if (number >= SIGRTMIN && number <= SIGRTMAX) {
    const int above = number - SIGRTMIN;
    return above == 0 ? "RTMIN" : "RTMIN+" + std::to_string(above);
  }
  const char* name = ::sigabbrev_np(number);
  return name ? name : std::to_string(number);
}

/// Signals that cannot be caught, that mean a bug in fleetrun, or that it needs itself.
bool is_reserved(int number) {
  constexpr int kReserved[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGPIPE, SIGSEGV, SIGBUS,
                               SIGFPE,  SIGILL,  SIGABRT, SIGTRAP, SIGSYS};
  return std::find(std::begin(kReserved), std::end(kReserved), number) != std::end(kReserved);
}

int signal_from(std::string_view text, std::string_view entry) {
  const auto number = parse_signal(text);
  if (!number)
    throw Error(ErrorKind::usage,
                "--signal_map: " + printable(text) + " in " + printable(entry) + " is not a signal", kHint);
  return *number;
}

SignalRule parse_rule(std::string_view text, std::string_view entry) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view word = text.substr(0, colon);
  const bool has_signal = colon < text.size();
  SignalRule rule;
  if (word == "stop") {
    rule.action = SignalAction::stop;
  } else if (word == "drain") {
    rule.action = SignalAction::drain;
  } else if (word == "forward") {
    rule.action = SignalAction::forward;
  } else if (word == "now" && !has_signal) {
    rule.action = SignalAction::now;
  } else if (word == "ignore" && !has_signal) {
    rule.action = SignalAction::ignore;
  } else if (!has_signal && parse_signal(word)) {
    return {SignalAction::forward, *parse_signal(word)};
  } else {
    throw Error(
        ErrorKind::usage,
        "--signal_map: " + printable(text) + " in " + printable(entry) + " is neither an action nor a signal",
        kHint);
  }
  if (has_signal) rule.as = signal_from(text.substr(colon + 1), entry);
  return rule;
}

std::string to_string(const SignalRule& rule) {
  const std::string as = rule.as == 0 ? "" : ":" + short_name(rule.as);
  switch (rule.action) {
    case SignalAction::stop:
      return "stop" + as;
    case SignalAction::drain:
      return "drain" + as;
    case SignalAction::now:
      return "now";
    case SignalAction::forward:
      return "forward" + as;
    case SignalAction::ignore:
      break;
  }
  return "ignore";
}

}  // namespace

std::optional<int> parse_signal(std::string_view text) noexcept {
  if (const auto number = parse_integer(text)) {
    if (*number < 1 || *number > SIGRTMAX) return std::nullopt;
    return static_cast<int>(*number);
  }
  std::string name = upper(text);
  if (name.starts_with("SIG")) name.erase(0, 3);
  if (name.empty()) return std::nullopt;
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known && name == known) return number;
  }
  if (!name.starts_with("RTMIN")) return std::nullopt;
  if (name.size() == 5) return SIGRTMIN;
  const auto above = name[5] == '+' ? parse_integer(std::string_view(name).substr(6)) : std::nullopt;
  if (!above || *above < 0 || *above > SIGRTMAX - SIGRTMIN) return std::nullopt;
  return SIGRTMIN + static_cast<int>(*above);
}

SignalMap default_signal_map() {
  SignalMap map;
  map.rules = {{SIGINT, {SignalAction::stop, 0}},     {SIGTERM, {SignalAction::stop, 0}},
               {SIGHUP, {SignalAction::stop, 0}},     {SIGQUIT, {SignalAction::stop, SIGQUIT}},
               {SIGUSR1, {SignalAction::forward, 0}}, {SIGUSR2, {SignalAction::forward, 0}}};
  return map;
}

SignalMap parse_signal_map(std::string_view text) {
  SignalMap map = default_signal_map();
  std::map<int, std::string> seen;
  for (const std::string& entry : split(text, ',')) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos)
      throw Error(ErrorKind::usage, "--signal_map: " + printable(entry) + " has no '='", kHint);
    const int number = signal_from(std::string_view(entry).substr(0, equals), entry);
    if (is_reserved(number))
      throw Error(ErrorKind::usage,
                  "--signal_map: " + signal_name(number) + " cannot be mapped: " +
                      (number == SIGKILL || number == SIGSTOP ? "no program can catch it"
                                                              : "fleetrun itself needs it"),
                  kHint);
    if (!seen.emplace(number, entry).second)
      throw Error(ErrorKind::usage, "--signal_map: " + signal_name(number) + " is there twice",
                  "give it once");
    map.rules[number] = parse_rule(std::string_view(entry).substr(equals + 1), entry);
    if (number == SIGHUP) map.user_hangup = true;
  }
  return map;
}

SignalMap signal_map_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::vector<std::string> words;
  for (const auto& [signal, action] : entries) words.push_back(signal + "=" + action);
  return parse_signal_map(join(words, ","));
}

std::string to_string(const SignalMap& map) {
  std::string text;
  for (const auto& [number, rule] : map.rules)
    text.append(text.empty() ? "" : ",").append(short_name(number)).append("=").append(to_string(rule));
  return text;
}

SignalRule rule_for(const SignalMap& map, int number, bool hangup_ignored) noexcept {
  if (number == SIGHUP && hangup_ignored && !map.user_hangup) return {SignalAction::ignore, 0};
  const auto rule = map.rules.find(number);
  return rule == map.rules.end() ? SignalRule{SignalAction::ignore, 0} : rule->second;
}

std::vector<int> signals_of(const SignalMap& map, bool hangup_ignored) {
  std::vector<int> numbers;
  for (const auto& [number, rule] : map.rules) {
    if (number == SIGHUP && hangup_ignored && !map.user_hangup) continue;
    numbers.push_back(number);
  }
  return numbers;
}

bool is_ignored(int number) noexcept {
  struct sigaction inherited = {};
  return ::sigaction(number, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
}

}  // namespace fleetrun::launcher
