// What the host checks of hosts mean for a job on them: findings, each with what to do. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/doctor/host_check.h"

namespace fleetrun::launcher::doctor {

/// One host as far as it could be asked.
struct HostReport {
  bool here = false;                      // it is the one that asks
  std::string name;                       // as the user wrote it
  std::string login_failure, login_hint;  // why nothing is known of it; empty: it answered
  std::string address;                    // where the others dial it
  std::optional<HostCheck> host_check;
  std::optional<std::int64_t> clock_offset_ns;  // of its clock, from that of the host that asked
  std::int64_t clock_error_ns = 0;              // at most
  std::string listen_failure;                   // why it could not be dialed at all
  std::vector<Reach> reaches;                   // of those that it dialed
  bool operator==(const HostReport&) const = default;
};

enum class Severity {
  problem,  // a job would not start, or not work
  advice,   // it may be slow, or fail later
};

struct Finding {
  Severity severity = Severity::problem;
  std::vector<std::string> hosts;  // names; empty: it is about all of them together
  std::string check;               // "ssh", "name", "clock"
  std::string what, hint;
  bool operator==(const Finding&) const = default;
};

struct Spec {
  std::string master;      // where the hosts are to meet; empty: not asked
  std::string directory;   // the job's working directory
  std::string ports = {};  // --port_range of the job; empty: any
  bool secret = false;     // each launcher needs the user's secret
};

/// Problems first, in the order of hosts within each kind. What is the same on several hosts is one finding.
std::vector<Finding> diagnose(const std::vector<HostReport>& reports, const Spec& spec);

std::string_view to_string(Severity severity) noexcept;

/// One line of JSON: {"findings": …, "hosts": …, "reaches": …, "well": true}.
std::string diagnosis_json(const std::vector<HostReport>& reports, const std::vector<Finding>& findings);

/// Nothing but advice, if anything.
bool is_well(const std::vector<Finding>& findings) noexcept;

/// Whether host `to` could be dialed from `from`: nullptr where that was not tried.
const Reach* reach_between(const std::vector<HostReport>& reports, std::size_t from, std::size_t to) noexcept;

/// "+1.2 s", "-3 ms", "0 ms"
std::string offset_text(std::int64_t nanoseconds);
/// "64 MiB", "1.5 GiB", "unlimited"
std::string bytes_text(std::uint64_t bytes);

}  // namespace fleetrun::launcher::doctor
