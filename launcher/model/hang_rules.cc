#include "launcher/model/hang_rules.h"

#include <algorithm>
#include <cassert>

#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kShortestPeriod{20}, kLongestPeriod{5'000};
constexpr int kLooksPerTimeout = 10;
constexpr int kLateLooks = 2;  // a pause between looks counts as this many at most
// Who was silent this many looks after another hangs with it: ranks that stop together are seen by different
// looks, and the one that the others wait for may be the last.
constexpr int kTogetherLooks = 2;

// Less than this is not work: the kernel counts in ticks of 10 ms, and a waiting interpreter or a thread that
// wakes up to look at the clock uses some parts of a thousand of a core.
constexpr double kMinCpuSeconds = 0.02;
constexpr double kMinCpuShare = 0.01;

double seconds(nanoseconds time) noexcept {
  return std::chrono::duration<double>(time).count();
}

std::string seconds_text(milliseconds time) {
  const auto tenths = (time.count() + 50) / 100;
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0 && tenths < 1000) text += "." + std::to_string(tenths % 10);
  return text + " s";
}

}  // namespace

std::optional<HangSigns> parse_hang_signs(std::string_view text) {
  HangSigns signs;
  for (const std::string& word : split(text, ',')) {
    bool* sign = word == "heartbeat" ? &signs.heartbeat
                 : word == "log"     ? &signs.log
                 : word == "cpu"     ? &signs.cpu
                                     : nullptr;
    if (sign == nullptr || *sign) return std::nullopt;
    *sign = true;
  }
  return signs.any() ? std::optional(signs) : std::nullopt;
}

milliseconds look_period(const HangRules& rules) noexcept {
  return std::clamp(rules.timeout / kLooksPerTimeout, kShortestPeriod, kLongestPeriod);
}

HangJudge::HangJudge(HangRules rules, std::vector<bool> serves)
    : rules_(rules), serves_(std::move(serves)), seen_(serves_.size()) {}

void HangJudge::forget(std::size_t index) {
  seen_.at(index) = {};
}

HangFindings HangJudge::look(nanoseconds now, std::span<const Vitals> processes) {
  assert(processes.size() == seen_.size());
  if (last_look_.count() >= 0)
    time_ += std::min<nanoseconds>(now - last_look_, kLateLooks * look_period(rules_));
  last_look_ = now;
  HangFindings findings;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (!processes[i].running) {
      seen_[i] = {};
      continue;
    }
    const bool was_debugged = seen_[i].debugged;
    update(seen_[i], processes[i]);
    if (seen_[i].debugged && !was_debugged) findings.debugged.push_back(i);
    auto silence = judge(seen_[i], serves_[i]);
    if (!silence) continue;
    silence->index = i;
    findings.silent.push_back(std::move(*silence));
  }
  std::stable_sort(findings.silent.begin(), findings.silent.end(),
                   [](const Silence& a, const Silence& b) { return a.lasted > b.lasted; });
  if (!findings.silent.empty() && findings.silent.front().lasted < rules_.timeout) findings.silent.clear();
  return findings;
}

void HangJudge::update(Seen& seen, const Vitals& vitals) const {
  const bool first = !seen.known;
  const bool suspended = first || vitals.debugged;
  if (suspended || vitals.beats != seen.last.beats) seen.beat = time_;
  if (suspended || vitals.log_bytes != seen.last.log_bytes) seen.log = time_;
  if (suspended || !vitals.stopped) seen.run = time_;
  const double used = vitals.cpu_seconds - seen.cpu_seconds;
  const double min = std::max(kMinCpuSeconds, kMinCpuShare * seconds(time_ - seen.cpu));
  if (suspended || used < 0 || used >= min) {  // it goes down when a descendant ends that nobody waited for
    seen.cpu = time_;
    seen.cpu_seconds = vitals.cpu_seconds;
  }
  seen.debugged = vitals.debugged;
  seen.last = vitals;
  seen.known = true;
}

std::optional<Silence> HangJudge::judge(const Seen& seen, bool serves) const {
  if (seen.debugged) return std::nullopt;
  const auto silence = [&](nanoseconds since, std::string what) -> std::optional<Silence> {
    const auto lasted = std::chrono::duration_cast<milliseconds>(time_ - since);
    if (lasted < rules_.timeout - kTogetherLooks * look_period(rules_)) return std::nullopt;
    std::string why = std::move(what) + " for " + seconds_text(lasted);
    if (seen.last.step) why += " (step " + std::to_string(*seen.last.step) + " was its last)";
    return Silence{0, lasted, std::move(why), seen.last.step, seen.last.stopped};
  };
  if (seen.last.stopped) {
    if (auto stopped = silence(seen.run, "has been stopped by a signal")) return stopped;
  }
  if (serves) return std::nullopt;
  const bool beats = seen.last.beats > 0;
  HangSigns by = rules_.by;
  if (!by.any()) by = {.heartbeat = beats, .log = !beats, .cpu = !beats};
  if (by.heartbeat && !beats) by = {.heartbeat = false, .log = true, .cpu = true};
  nanoseconds since{};
  std::vector<std::string> missing;
  const auto consider = [&](bool wanted, nanoseconds sign, const char* what) {
    if (!wanted) return;
    since = std::max(since, sign);
    missing.emplace_back(what);
  };
  consider(by.heartbeat, seen.beat, "sent no heartbeat");
  consider(by.log, seen.log, "wrote nothing to its log");
  consider(by.cpu, seen.cpu, "used no processor time");
  std::string what = missing.front();
  for (std::size_t i = 1; i < missing.size(); ++i)
    what += (i + 1 == missing.size() ? " and " : ", ") + missing[i];
  return silence(since, std::move(what));
}

}  // namespace fleetrun::launcher
