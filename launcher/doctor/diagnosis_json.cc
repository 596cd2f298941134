#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"

#include "launcher/doctor/diagnosis.h"

namespace fleetrun::launcher::doctor {

std::string diagnosis_json(const std::vector<HostReport>& reports, const std::vector<Finding>& findings) {
  using nlohmann::json;
  json hosts = json::array(), reaches = json::array(), found = json::array();
  for (const HostReport& report : reports) {
    json host = {{"name", report.name}, {"address", report.address}, {"login_failure", report.login_failure}};
    if (report.host_check) host["condition"] = parse_json<json>(to_json(*report.host_check));
    if (report.clock_offset_ns) {
      host["clock_offset_ns"] = *report.clock_offset_ns;
      host["clock_error_ns"] = report.clock_error_ns;
    }
    hosts.push_back(std::move(host));
    for (const Reach& reach : report.reaches) {
      if (reach.host >= reports.size()) continue;
      reaches.push_back({{"from", report.name},
                         {"to", reports[reach.host].name},
                         {"failure", reach.failure},
                         {"micros", reach.micros}});
    }
  }
  for (const Finding& finding : findings)
    found.push_back({{"severity", to_string(finding.severity)},
                     {"hosts", finding.hosts},
                     {"check", finding.check},
                     {"what", finding.what},
                     {"hint", finding.hint}});
  return json_text(
             json{{"hosts", hosts}, {"reaches", reaches}, {"findings", found}, {"well", is_well(findings)}}) +
         "\n";
}

}  // namespace fleetrun::launcher::doctor
