#include "cli/doctor_text.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "cli/table_text.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

using namespace launcher::doctor;

constexpr std::size_t kWidestMatrix = 24;  // hosts; with more, only what is wrong is said

std::string count_text(std::uint64_t count) {
  return count == std::numeric_limits<std::uint64_t>::max() ? "unlimited" : std::to_string(count);
}

std::string directory_text(const DirectoryFacts& facts, bool several) {
  if (!facts.exists) return "missing";
  if (!facts.writable) return "read-only";
  return (several ? facts.shared ? "shared, " : "its own, " : "") + bytes_text(facts.free_bytes) + " free";
}

Table host_table(const std::vector<HostReport>& reports) {
  const bool several = reports.size() > 1;
  Table table = {{"HOST", "SSH", "ADDRESS", "CLOCK", "CORES", "DEVICES", "FILES", "/DEV/SHM", "DIRECTORY"}};
  for (const HostReport& report : reports) {
    if (!report.host_check) {
      table.push_back({printable(report.name, 40), "no"});
      continue;
    }
    const HostCheck& host_check = *report.host_check;
    const std::string address = report.address.empty()
                                    ? host_check.addresses.empty() ? "-" : host_check.addresses.front()
                                    : report.address;
    table.push_back({printable(report.name, 40),
                     !report.login_failure.empty() ? "lost"
                     : report.here                 ? "here"
                                                   : "ok",
                     address, report.clock_offset_ns ? offset_text(*report.clock_offset_ns) : "-",
                     std::to_string(host_check.cores), std::to_string(host_check.devices.size()),
                     count_text(host_check.limits.open_files),
                     bytes_text(host_check.limits.shared_memory_bytes),
                     directory_text(host_check.directory, several)});
  }
  if (several) return table;
  for (auto& row : table) row.erase(row.begin() + 3), row.erase(row.begin() + 1);  // nobody was logged in to
  return table;
}

std::string reach_text(const Reach* reach) {
  if (!reach) return "?";
  if (!reach->failure.empty()) return "NO";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", static_cast<double>(reach->micros) / 1000);
  return text;
}

Table reach_table(const std::vector<HostReport>& reports) {
  Table table = {{"from \\ to"}};
  for (const HostReport& report : reports) table.front().push_back(printable(report.name, 24));
  for (std::size_t from = 0; from < reports.size(); ++from) {
    auto& row = table.emplace_back();
    row.push_back(printable(reports[from].name, 24));
    for (std::size_t to = 0; to < reports.size(); ++to)
      row.push_back(from == to ? "-" : reach_text(reach_between(reports, from, to)));
  }
  return table;
}

std::string plural(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string summary(const std::vector<HostReport>& reports, const std::vector<Finding>& findings) {
  const auto problems =
      static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.severity == Severity::problem;
      }));
  const std::size_t advice = findings.size() - problems;
  std::string text = plural(reports.size(), "host", "hosts") + ": ";
  text += problems == 0 ? "all well" : plural(problems, "problem", "problems");
  if (advice > 0) text += ", " + plural(advice, "piece of advice", "pieces of advice");
  return text + "\n";
}

}  // namespace

std::string doctor_text(const std::vector<HostReport>& reports, const std::vector<Finding>& findings,
                        const std::string& directory) {
  std::string text = table_text(host_table(reports), "  ");
  if (reports.size() > 1) text += "  directory: " + printable(directory) + "\n";
  if (reports.size() > 1 && reports.size() <= kWidestMatrix)
    text += "\nTCP between them, both ways\n" + table_text(reach_table(reports), "  ");
  if (!findings.empty()) text += "\n";
  for (const Finding& finding : findings) {
    text.append(to_string(finding.severity)).append(": ");
    if (!finding.hosts.empty()) text.append(printable(join(finding.hosts, ", "))).append(": ");
    text.append(finding.check).append(": ").append(finding.what).append("\n");
    if (!finding.hint.empty()) text.append("  hint: ").append(finding.hint).append("\n");
  }
  return text + "\n" + summary(reports, findings);
}

}  // namespace fleetrun::cli
