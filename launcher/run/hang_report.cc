#include "launcher/run/hang_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

using Indices = std::vector<std::size_t>;

bool contains(const Indices& indices, std::size_t index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

Indices indices_of(const std::vector<Silence>& silent) {
  Indices indices;
  for (const Silence& silence : silent) indices.push_back(silence.index);
  return indices;
}

/// The one with the fewest steps, when every one has steps and it is alone.
Indices behind_all(const std::vector<Silence>& silent) {
  if (!std::all_of(silent.begin(), silent.end(), [](const Silence& one) { return one.step.has_value(); }))
    return {};
  const auto min = std::min_element(silent.begin(), silent.end(),
                                    [](const Silence& a, const Silence& b) { return *a.step < *b.step; });
  const auto same = std::count_if(silent.begin(), silent.end(),
                                  [&](const Silence& one) { return *one.step == *min->step; });
  return same == 1 ? Indices{min->index} : Indices{};
}

Indices choose_culprits(const std::vector<Silence>& silent, const StackReport& stacks) {
  Indices stopped, odd;
  for (const Silence& silence : silent) {
    if (silence.stopped) stopped.push_back(silence.index);
    if (contains(stacks.odd, silence.index)) odd.push_back(silence.index);
  }
  if (!stopped.empty()) return stopped;
  if (!odd.empty()) return odd;
  const Indices behind = behind_all(silent);
  return behind.empty() ? Indices{silent.front().index} : behind;
}

}  // namespace

HangReport make_hang_report(const std::vector<Silence>& silent, const std::vector<ProcessStacks>& stacks,
                            const std::vector<std::string>& names) {
  const StackReport groups = group_stacks(stacks);
  HangReport report;
  report.culprits = choose_culprits(silent, groups);
  report.silent = indices_of(silent);
  std::sort(report.silent.begin(), report.silent.end());
  std::stable_partition(report.silent.begin(), report.silent.end(),
                        [&](std::size_t index) { return contains(report.culprits, index); });
  Indices others;
  nlohmann::json list = nlohmann::json::array();
  for (const Silence& silence : silent) {
    const std::string& name = names.at(silence.index);
    if (silence.index == report.culprits.front()) report.why = silence.why;
    if (contains(report.culprits, silence.index))
      report.text += name + " " + silence.why + "\n";
    else
      others.push_back(silence.index);
    nlohmann::json entry = {{"index", silence.index},
                            {"why", silence.why},
                            {"seconds", static_cast<double>(silence.lasted.count()) / 1000}};
    if (silence.step) entry["step"] = *silence.step;
    list.push_back(std::move(entry));
  }
  std::sort(others.begin(), others.end());
  std::vector<std::string> other_names;
  for (const std::size_t index : others) other_names.push_back(names[index]);
  if (!others.empty()) report.text += "silent too, perhaps because of it: " + join(other_names, ", ") + "\n";
  report.text += to_text(groups);
  nlohmann::json json = {{"culprits", report.culprits}, {"silent", list}};
  json["stacks"] = parse_json<nlohmann::json>(to_json(groups));
  report.json = json_text(json);
  return report;
}

}  // namespace fleetrun::launcher
