// Draws are splitmix64 over (seed, clause, attempt, process, purpose): no state is kept, so the order in
// which processes start or attempts follow each other changes nothing.
#include "launcher/model/injection.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <csignal>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/exit_reason.h"
#include "runtime/base/mix.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kSlowStart = "slow-start";
constexpr std::size_t kMaxRanks = 1'000'000;

[[noreturn]] void refuse(const std::string& clause, const std::string& what, std::string hint = {}) {
  throw Error(ErrorKind::usage, "--inject '" + printable(clause) + "': " + what, std::move(hint));
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; (begin = text.find_first_not_of(" \t\n", begin)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(" \t\n", begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// "kill", "SIGKILL", "abort", "segv" → its number; 0 when there is none.
int signal_of(std::string name) {
  name = lower(std::move(name));
  if (name.starts_with("sig")) name = name.substr(3);
  if (name == "abort") return SIGABRT;
  for (int number = 1; number < 32; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && name == lower(known)) return number;
  }
  return 0;
}

/// ", did you mean kill?" as a hint, or what there is.
std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const auto near = nearest(word, known);
  return near ? "did you mean " + *near + "?" : "there are " + join(known, ", ");
}

/// Reads one clause; each step takes a word of it.
class ClauseReader {
 public:
  explicit ClauseReader(std::string_view clause) : words_(words_of(clause)) {
    injection_.text = join(words_, " ");
  }

  Injection read() {
    std::size_t first = 0;
    if (words_[0] == "launcher" || words_[0] == "init") {
      injection_.target = words_[0] == "init" ? Injection::Target::init : Injection::Target::launcher;
      if (words_.size() < 2) fail("no signal is named", "write for example " + words_[0] + " kill at=2s");
      first = 1;
    }
    read_action(words_[first]);
    for (std::size_t i = first + 1; i < words_.size(); ++i) read_pair(words_[i]);
    check_whole();
    return injection_;
  }

 private:
  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    refuse(injection_.text, what, std::move(hint));
  }

  void read_action(const std::string& word) {
    injection_.signal = signal_of(word);
    const bool on_process = injection_.target == Injection::Target::process;
    if (injection_.signal != 0 || (on_process && word == kSlowStart)) return;
    std::vector<std::string> known = {"kill",  "stop", "cont", "term", "segv",
                                      "abort", "int",  "hup",  "usr1", "usr2"};
    if (on_process) known.insert(known.end(), {std::string(kSlowStart), "launcher", "init"});
    fail("there is no action '" + printable(word) + "'", suggestion(word, known));
  }

  void read_pair(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos)
      fail("'" + printable(word) + "' is not of the form key=value", "clauses are separated by ';'");
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (!seen_.insert(key).second) fail(key + " is given twice");
    if (key == "rank")
      read_rank(value);
    else if (key == "role")
      injection_.role = value.empty() ? throw_for(word, "the name of a role") : value;
    else if (key == "at")
      read_at(value);
    else if (key == "attempt")
      read_attempt(value);
    else if (key == "chance")
      read_chance(value);
    else if (key == "by")
      injection_.by = window("by=" + value, value);
    else
      fail("there is no key '" + printable(key) + "'",
           suggestion(key, {"rank", "role", "at", "attempt", "chance", "by"}));
  }

  [[noreturn]] std::string throw_for(const std::string& word, const std::string& wanted) const {
    fail("'" + printable(word) + "': " + wanted + " is needed");
  }

  void read_rank(const std::string& value) {
    if (value == "any" || value == "all") {
      injection_.choice = value == "any" ? Injection::Choice::any : Injection::Choice::all;
      return;
    }
    const auto rank = parse_integer(value);
    if (!rank || *rank < 0 || *rank >= static_cast<std::int64_t>(kMaxRanks))
      throw_for("rank=" + value, "a rank, any or all");
    injection_.rank = static_cast<int>(*rank);
  }

  void read_at(const std::string& value) {
    if (value == "started") return;
    if (value.starts_with("step:")) {
      const auto step = parse_integer(value.substr(5));
      if (!step || *step < 0) throw_for("at=" + value, "a step such as step:120");
      injection_.moment = Injection::Moment::step;
      injection_.step = *step;
      return;
    }
    injection_.moment = Injection::Moment::elapsed;
    injection_.at = window("at=" + value, value);
  }

  void read_attempt(const std::string& value) {
    if (value == "any") {
      injection_.attempt.reset();
      return;
    }
    const auto attempt = parse_integer(value);
    if (!attempt || *attempt < 0 || *attempt > 1'000'000)
      throw_for("attempt=" + value, "a number from 0, or any");
    injection_.attempt = static_cast<int>(*attempt);
  }

  void read_chance(const std::string& value) {
    double chance = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), chance);
    if (error != std::errc() || end != value.data() + value.size() || !(chance >= 0 && chance <= 1))
      throw_for("chance=" + value, "a number from 0 to 1");
    injection_.chance = chance;
  }

  /// "2s" or "1s..5s"
  Injection::Window window(const std::string& word, const std::string& value) const {
    const std::size_t dots = value.find("..");
    const auto from = parse_duration_ms(value.substr(0, dots));
    const auto to = dots == std::string::npos ? from : parse_duration_ms(value.substr(dots + 2));
    if (!from || !to || *to < *from) throw_for(word, "a time such as 2s, 500ms or 1s..5s");
    return {milliseconds(*from), milliseconds(*to)};
  }

  bool seen(const char* key) const { return seen_.contains(key); }

  void check_whole() const {
    const std::string action =
        injection_.signal == 0 ? std::string(kSlowStart) : signal_name(injection_.signal);
    if (injection_.target != Injection::Target::process) {
      if (seen("rank") || seen("role")) fail(words_[0] + " is one process: it has no rank and no role");
      if (injection_.moment == Injection::Moment::step) fail(words_[0] + " has no steps");
      if (seen("by")) fail("by= goes with " + std::string(kSlowStart) + " only");
      return;
    }
    if (!seen("rank")) fail("whom " + action + " is for is not said", "add rank=N, rank=any or rank=all");
    if (injection_.signal != 0 && seen("by")) fail("by= goes with " + std::string(kSlowStart) + " only");
    if (injection_.signal == 0 && seen("at"))
      fail("at= does not go with " + std::string(kSlowStart),
           "say how much later the process starts: by=500ms");
    if (injection_.signal == 0 && !seen("by")) fail("how much later is not said", "add for example by=500ms");
  }

  Injection injection_;
  std::vector<std::string> words_;
  std::set<std::string, std::less<>> seen_;
};

enum class Draw : std::uint64_t { chance, moment, delay, process };

/// What is drawn for one clause in one attempt.
class Dice {
 public:
  Dice(std::uint64_t seed, std::size_t clause, int attempt)
      : state_(split_mix(split_mix(seed) ^ split_mix(clause + 1) ^
                         (split_mix(static_cast<std::uint64_t>(attempt)) << 1))) {}

  /// 0 ≤ x < 1
  double fraction(Draw purpose, std::size_t index) const noexcept {
    const std::uint64_t bits = split_mix(state_ ^ split_mix(index * 8 + static_cast<std::uint64_t>(purpose)));
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

  milliseconds time(const Injection::Window& window, Draw purpose, std::size_t index) const {
    const auto width = static_cast<double>((window.to - window.from).count() + 1);
    return window.from + milliseconds(static_cast<std::int64_t>(fraction(purpose, index) * width));
  }

 private:
  std::uint64_t state_;
};

/// The processes that a clause is about, as indices; `any` is not drawn yet.
std::vector<std::size_t> candidates(const Injection& injection, std::span<const InjectionTarget> processes) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const InjectionTarget& process = processes[i];
    const bool of_role = injection.role.empty() ? !process.serves : process.role == injection.role;
    if (of_role && (injection.choice != Injection::Choice::one || process.rank == injection.rank))
      found.push_back(i);
  }
  return found;
}

std::string seconds_text(milliseconds time) {
  std::string text = std::to_string(static_cast<double>(time.count()) / 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

std::string describe(const PlannedSignal& signal, const std::string& whom, int attempt) {
  std::string text = signal_name(signal.signal) + " to " + whom;
  switch (signal.moment) {
    case Injection::Moment::started:
      return text + " as soon as it is started, in attempt " + std::to_string(attempt);
    case Injection::Moment::elapsed:
      return text + ", " + seconds_text(signal.at) + " into attempt " + std::to_string(attempt);
    case Injection::Moment::step:
      break;
  }
  return text + " at step " + std::to_string(signal.step) + " of attempt " + std::to_string(attempt);
}

PlannedSignal plan_signal(const Injection& injection, const Dice& dice, std::size_t index,
                          const std::string& whom, int attempt) {
  PlannedSignal signal = {.target = injection.target,
                          .index = index,
                          .signal = injection.signal,
                          .moment = injection.moment,
                          .at = {},
                          .step = injection.step,
                          .what = {}};
  if (injection.moment == Injection::Moment::elapsed)
    signal.at = dice.time(injection.at, Draw::moment, index);
  signal.what = describe(signal, whom, attempt);
  return signal;
}

}  // namespace

std::vector<Injection> parse_injections(std::string_view spec) {
  std::vector<Injection> injections;
  const std::vector<std::string> clauses = split(spec, ';');
  for (const std::string& clause : clauses) {
    const bool last = &clause == &clauses.back();
    if (words_of(clause).empty()) {
      if (last && !injections.empty()) break;
      refuse(std::string(spec), "a clause is empty", "write for example kill rank=1 at=2s");
    }
    injections.push_back(ClauseReader(clause).read());
  }
  if (injections.empty()) refuse(std::string(spec), "nothing is said", "write for example kill rank=1 at=2s");
  return injections;
}

void check_injections(std::span<const Injection> injections, std::span<const InjectionTarget> processes) {
  std::set<std::string> waited_for, all;
  for (const InjectionTarget& process : processes) {
    all.insert(process.role);
    if (!process.serves) waited_for.insert(process.role);
  }
  const std::vector<std::string> names(all.begin(), all.end());
  for (const Injection& injection : injections) {
    if (injection.target != Injection::Target::process) continue;
    const auto fail = [&](const std::string& what, std::string hint) {
      throw Error(ErrorKind::config, "--inject '" + printable(injection.text) + "': " + what,
                  std::move(hint));
    };
    if (injection.role.empty() && waited_for.size() > 1)
      fail("which role is meant is not said", "add role=, one of " + join(names, ", "));
    if (!injection.role.empty() && !all.contains(injection.role))
      fail("the job has no role '" + printable(injection.role) + "'", suggestion(injection.role, names));
    if (!candidates(injection, processes).empty()) continue;
    const std::string role =
        injection.role.empty() && !waited_for.empty() ? *waited_for.begin() : injection.role;
    int max = -1;
    for (const InjectionTarget& process : processes) {
      if (process.role == role) max = std::max(max, process.rank);
    }
    fail("there is no " + (role.empty() ? "process" : role) + " " + std::to_string(injection.rank),
         "the ranks on this host go up to " + std::to_string(max));
  }
}

InjectionPlan plan_injections(std::span<const Injection> injections,
                              std::span<const InjectionTarget> processes, int attempt, std::uint64_t seed) {
  InjectionPlan plan;
  plan.start_delays.resize(processes.size());
  for (std::size_t clause = 0; clause < injections.size(); ++clause) {
    const Injection& injection = injections[clause];
    if (injection.attempt && *injection.attempt != attempt) continue;
    const Dice dice(seed, clause, attempt);
    if (injection.target != Injection::Target::process) {
      const char* whom = injection.target == Injection::Target::init ? "fleetrun-init" : "fleetrun";
      if (dice.fraction(Draw::chance, 0) < injection.chance)
        plan.signals.push_back(plan_signal(injection, dice, 0, whom, attempt));
      continue;
    }
    std::vector<std::size_t> chosen = candidates(injection, processes);
    if (injection.choice == Injection::Choice::any && !chosen.empty())
      chosen = {chosen[static_cast<std::size_t>(dice.fraction(Draw::process, 0) *
                                                static_cast<double>(chosen.size()))]};
    for (const std::size_t index : chosen) {
      if (dice.fraction(Draw::chance, index) >= injection.chance) continue;
      const std::string whom = processes[index].role + " " + std::to_string(processes[index].rank);
      if (injection.signal == 0)
        plan.start_delays[index] += dice.time(injection.by, Draw::delay, index);
      else
        plan.signals.push_back(plan_signal(injection, dice, index, whom, attempt));
    }
  }
  return plan;
}

bool needs_seed(std::span<const Injection> injections) noexcept {
  return std::any_of(injections.begin(), injections.end(), [](const Injection& injection) {
    return injection.chance < 1 || injection.choice == Injection::Choice::any ||
           injection.at.from != injection.at.to || injection.by.from != injection.by.to;
  });
}

bool needs_heartbeats(std::span<const Injection> injections) noexcept {
  return std::any_of(injections.begin(), injections.end(),
                     [](const Injection& injection) { return injection.moment == Injection::Moment::step; });
}

}  // namespace fleetrun::launcher
