#include <nlohmann/json.hpp>

#include "launcher/doctor/diagnosis.h"

namespace fleetrun::launcher::doctor {

std::string diagnosis_json(const std::vector<Patient>& patients, const std::vector<Finding>& findings) {
  using nlohmann::json;
  json hosts = json::array(), reaches = json::array(), found = json::array();
  for (const Patient& patient : patients) {
    json host = {
        {"name", patient.name}, {"address", patient.address}, {"login_failure", patient.login_failure}};
    if (patient.condition) host["condition"] = json::parse(to_json(*patient.condition));
    if (patient.clock_offset_ns) {
      host["clock_offset_ns"] = *patient.clock_offset_ns;
      host["clock_error_ns"] = patient.clock_error_ns;
    }
    hosts.push_back(std::move(host));
    for (const Reach& reach : patient.reaches) {
      if (reach.host >= patients.size()) continue;
      reaches.push_back({{"from", patient.name},
                         {"to", patients[reach.host].name},
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
  return json({{"hosts", hosts}, {"reaches", reaches}, {"findings", found}, {"well", is_well(findings)}})
             .dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

}  // namespace fleetrun::launcher::doctor
