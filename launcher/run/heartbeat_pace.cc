#include "launcher/run/heartbeat_pace.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kMaxSteps = 32;
constexpr std::size_t kFewestSteps = 5;  // before anything is said
constexpr double kMinSeconds = 0.005;    // a difference below this is of no interest
constexpr double kRecovered = 0.75;      // of the ratio: below it a slow process is slow no more

template <class Values>
double median(Values values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void push(std::deque<double>& values, double value) {
  values.push_back(value);
  if (values.size() > kMaxSteps) values.pop_front();
}

}  // namespace

PaceJudge::PaceJudge(std::vector<std::string> roles, double ratio)
    : roles_(std::move(roles)), ratio_(ratio), paces_(roles_.size()) {}

void PaceJudge::forget(std::size_t index) {
  paces_.at(index) = {};
}

std::vector<Straggler> PaceJudge::look(std::chrono::nanoseconds now, std::span<const Heartbeat> heartbeats) {
  for (std::size_t i = 0; i < paces_.size(); ++i) add(paces_[i], now, heartbeats[i]);
  std::vector<Straggler> slow;
  for (std::size_t i = 0; i < paces_.size(); ++i) {
    const auto straggler = compare(i);
    if (!straggler) continue;
    const double ratio = straggler->seconds / std::max(straggler->usual, 1e-9);
    const bool is_slow = ratio >= ratio_ && straggler->seconds - straggler->usual >= kMinSeconds;
    if (is_slow && !std::exchange(paces_[i].told, true)) slow.push_back(*straggler);
    if (ratio < ratio_ * kRecovered) paces_[i].told = false;
  }
  return slow;
}

void PaceJudge::add(Pace& pace, std::chrono::nanoseconds now, const Heartbeat& heartbeat) const {
  if (!heartbeat.step || heartbeat.step == pace.step) return;
  const bool forward = pace.step && *heartbeat.step > *pace.step;
  if (forward) {
    const double seconds = std::chrono::duration<double>(now - pace.since).count();
    push(pace.between, seconds / static_cast<double>(*heartbeat.step - *pace.step));
    if (heartbeat.work_seconds) push(pace.work, *heartbeat.work_seconds);
  } else {
    pace.between.clear();  // it began anew: a new pass over the data
    pace.work.clear();
  }
  pace.step = heartbeat.step;
  pace.since = now;
}

std::optional<Straggler> PaceJudge::compare(std::size_t index) const {
  const auto medians = [&](std::deque<double> Pace::*values) -> std::optional<Straggler> {
    if ((paces_[index].*values).size() < kFewestSteps) return std::nullopt;
    std::vector<double> others;
    for (std::size_t i = 0; i < paces_.size(); ++i) {
      if (i != index && roles_[i] == roles_[index] && (paces_[i].*values).size() >= kFewestSteps)
        others.push_back(median(paces_[i].*values));
    }
    if (others.empty()) return std::nullopt;
    return Straggler{index, median(paces_[index].*values), median(others)};
  };
  const auto by_work = medians(&Pace::work);
  return by_work ? by_work : medians(&Pace::between);
}

std::string to_string(const Straggler& straggler) {
  char text[96];
  std::snprintf(text, sizeof text, "is slow: %.2g s a step, the others %.2g s", straggler.seconds,
                straggler.usual);
  return text;
}

}  // namespace fleetrun::launcher
