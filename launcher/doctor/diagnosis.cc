// What is a problem and what is advice: a problem stops a job or makes it wrong; advice is about what often
// hurts later (few descriptors, a small /dev/shm, clocks that make logs hard to read).
#include "launcher/doctor/diagnosis.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>

#include "launcher/doctor/reach.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher::doctor {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000, kSecond = 1'000 * kMillisecond;
constexpr std::int64_t kMaxOffset = kSecond;
constexpr std::uint64_t kFewFiles = 4096, kFewProcesses = 4096;
constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
constexpr std::uint64_t kLittleSharedMemory = kGiB, kLittleDisk = kGiB;

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

class Doctor {
 public:
  Doctor(const std::vector<HostReport>& reports, const Spec& spec) : reports_(reports), spec_(spec) {}

  std::vector<Finding> findings() {
    for (const HostReport& report : reports_) {
      host_ = report.name;
      if (!report.login_failure.empty()) problem("ssh", report.login_failure, report.login_hint);
      if (!report.host_check) continue;
      name(report);
      clock(report);
      devices(*report.host_check);
      limits(*report.host_check);
      directory(report);
      secret(*report.host_check);
      master(*report.host_check);
      reaches(report);
    }
    host_.clear();
    device_numbers();
    secrets();
    masters();
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
    return std::move(findings_);
  }

 private:
  bool alone() const noexcept { return reports_.size() == 1; }

  void problem(const char* check, std::string what, std::string hint) {
    add({Severity::problem, {}, check, std::move(what), std::move(hint)});
  }
  void advice(const char* check, std::string what, std::string hint) {
    add({Severity::advice, {}, check, std::move(what), std::move(hint)});
  }
  void add(Finding finding) {
    const auto same = std::find_if(findings_.begin(), findings_.end(), [&](const Finding& other) {
      return other.severity == finding.severity && other.check == finding.check &&
             other.what == finding.what && other.hint == finding.hint && !other.hosts.empty();
    });
    if (same != findings_.end() && !host_.empty()) return same->hosts.push_back(host_);
    if (!host_.empty()) finding.hosts = {host_};
    findings_.push_back(std::move(finding));
  }

  void name(const HostReport& report) {
    const HostCheck& host_check = *report.host_check;
    const NameFacts& own = host_check.own_name;
    if (own.addresses.empty()) {
      advice("name", "it does not know its own name " + host_check.host_name + ": " + own.failure,
             "add it to /etc/hosts there; libraries such as Gloo look it up");
    } else if (std::all_of(own.addresses.begin(), own.addresses.end(), is_loopback) &&
               !host_check.addresses.empty()) {
      advice("name",
             "its own name " + host_check.host_name + " is " + own.addresses.front() +
                 " there, which others cannot dial",
             "give the name its address in /etc/hosts; libraries such as Gloo look it up");
    } else if (std::none_of(own.addresses.begin(), own.addresses.end(), [&](const std::string& address) {
                 return is_loopback(address) ||
                        std::count(host_check.addresses.begin(), host_check.addresses.end(), address);
               })) {
      problem("name",
              "its own name " + host_check.host_name + " is " + own.addresses.front() +
                  ", which is not its address",
              "correct /etc/hosts or the name server: it has " +
                  (host_check.addresses.empty() ? "no address" : join(host_check.addresses, ", ")));
    }
    if (host_check.addresses.empty() && !alone())
      problem("address", "it has no address but the loopback's", "bring its network up");
    std::vector<std::string> unknown, no_way;
    std::string why;
    for (const NameFacts& other : host_check.names) {
      if (other.addresses.empty())
        why = other.failure, unknown.push_back(other.name);
      else if (other.from.empty())
        no_way.push_back(other.name);
    }
    if (!unknown.empty())
      advice("name", "it does not know " + join(unknown, ", ") + ": " + why,
             "add them to /etc/hosts there, or write addresses instead of names");
    if (!no_way.empty())
      problem("route", "it has no route to " + join(no_way, ", "), "look at `ip route` there");
  }

  void clock(const HostReport& report) {
    if (!report.host_check->clock_synchronized)
      advice("clock", "nothing keeps its clock", "run chrony or systemd-timesyncd there");
    if (!report.clock_offset_ns) return;
    const std::int64_t offset = std::abs(*report.clock_offset_ns);
    if (offset - report.clock_error_ns > kMaxOffset)
      advice("clock", "its clock differs from this host's by " + offset_text(*report.clock_offset_ns),
             "run chrony or systemd-timesyncd there: times in logs do not fit together until then");
  }

  void devices(const HostCheck& host_check) {
    if (host_check.unusable_devices > 0)
      problem("devices", std::to_string(host_check.unusable_devices) + " of its devices may not be opened",
              "look at the permissions of /dev/nvidia* there, and at the container's devices");
  }

  void limits(const HostCheck& host_check) {
    const Limits& limits = host_check.limits;
    if (limits.open_files < kFewFiles)
      advice("open files", "a process may open " + std::to_string(limits.open_files) + " files only",
             limits.most_open_files >= kFewFiles
                 ? "ulimit -n " + std::to_string(std::min<std::uint64_t>(limits.most_open_files, 65'536)) +
                       " before the launch, or raise nofile in /etc/security/limits.conf"
                 : "raise nofile in /etc/security/limits.conf, and log in anew");
    if (limits.processes < kFewProcesses)
      advice("processes",
             "the user may have " + std::to_string(limits.processes) + " processes and threads only",
             "raise nproc in /etc/security/limits.conf, and log in anew");
    if (host_check.has_rdma && limits.locked_bytes < kGiB)
      advice("locked memory",
             "a process may lock " + bytes_text(limits.locked_bytes) + " only, and there is RDMA",
             "set memlock to unlimited in /etc/security/limits.conf, and log in anew");
    if (limits.shared_memory_bytes == 0)
      problem("/dev/shm", "there is no /dev/shm", "mount a tmpfs there: data loaders and NCCL use it");
    else if (limits.shared_memory_bytes < kLittleSharedMemory)
      advice("/dev/shm", "it has " + bytes_text(limits.shared_memory_bytes) + " only",
             "data loaders and NCCL use it; for a container: --shm-size=8g");
  }

  void directory(const HostReport& report) {
    const DirectoryFacts& facts = report.host_check->directory;
    if (!facts.exists) {
      problem("directory", "there is no " + spec_.directory,
              "copy it there, share it, or choose another with --chdir");
      return;
    }
    if (!facts.writable)
      advice("directory", spec_.directory + " cannot be written to",
             "choose another place for logs with --log_dir");
    else if (facts.free_bytes < kLittleDisk)
      advice("directory", spec_.directory + " has " + bytes_text(facts.free_bytes) + " free only",
             "make room, or choose another place for logs with --log_dir");
  }

  void secret(const HostCheck& host_check) {
    if (spec_.secret && host_check.secret.empty())
      problem(
          "secret",
          host_check.secret_failure.empty() ? "there is no secret of the user" : host_check.secret_failure,
          alone() ? "the first launch creates it; copy it to the other hosts"
                  : "copy ~/.config/fleetrun/secret to every host (mode 0600)");
  }

  void master(const HostCheck& host_check) {
    if (host_check.master && !host_check.master->failure.empty())
      problem("master", host_check.master->failure, "check --master, and that no firewall is between");
  }

  void reaches(const HostReport& report) {
    if (!report.listen_failure.empty())
      problem("ports", report.listen_failure, "write the host's address as it is on its own interfaces");
    std::map<std::string, std::vector<std::string>> failed;  // by reason
    for (const Reach& reach : report.reaches)
      if (!reach.failure.empty() && reach.host < reports_.size())
        failed[reach.failure].push_back(reports_[reach.host].name);
    for (const auto& [failure, hosts] : failed) {
      // Both directions dead is another matter than one.
      const bool one_way = std::any_of(
          report.reaches.begin(), report.reaches.end(), [&, &failure = failure](const Reach& reach) {
            const auto own = static_cast<std::size_t>(&report - reports_.data());
            const Reach* back = reach.failure != failure ? nullptr : reach_between(reports_, reach.host, own);
            return back && back->failure.empty();
          });
      problem("ports",
              "it cannot dial " + join(hosts, ", ") + ": " + failure +
                  (one_way ? " (the other direction works)" : ""),
              "let TCP through between all hosts of a job: look at the firewalls of both, and at routes" +
                  std::string(failure.find(kAtPorts) == std::string::npos
                                  ? ""
                                  : "; --port_range=FIRST:LAST keeps a job to the ports that are open"));
    }
  }

  void device_numbers() {
    std::map<std::size_t, std::vector<std::string>> hosts;
    for (const HostReport& report : reports_)
      if (report.host_check) hosts[report.host_check->devices.size()].push_back(report.name);
    if (hosts.size() < 2) return;
    std::vector<std::string> parts;
    for (const auto& [number, names] : hosts)
      parts.push_back(std::to_string(number) + " on " + join(names, ", "));
    advice("devices", "the hosts have different numbers of devices: " + join(parts, "; "),
           "name the trainers of each host in --hosts (h1:8,h2:4), or look why some are missing");
  }

  void secrets() {
    if (!spec_.secret) return;
    std::map<std::string, std::vector<std::string>> hosts;
    for (const HostReport& report : reports_)
      if (report.host_check && !report.host_check->secret.empty())
        hosts[report.host_check->secret].push_back(report.name);
    if (hosts.size() < 2) return;
    std::vector<std::string> parts;
    for (const auto& [secret, names] : hosts) parts.push_back(join(names, ", "));
    problem("secret",
            "the user's secret is not the same on all hosts: it differs between " + join(parts, " and "),
            "copy ~/.config/fleetrun/secret to every host (mode 0600)");
  }

  void masters() {
    if (spec_.master.empty() || spec_.master.starts_with("etcd://") || alone()) return;
    std::size_t asked = 0, owners = 0;
    for (const HostReport& report : reports_) {
      if (!report.host_check || !report.host_check->master) continue;
      ++asked;
      if (report.host_check->master->ours) ++owners;
    }
    if (asked == reports_.size() && owners == 0)
      problem("master", spec_.master + " is an address of none of these hosts",
              "--master has to be an address of one of the job's hosts");
  }

  const std::vector<HostReport>& reports_;
  const Spec& spec_;
  std::string host_;  // that is being looked at
  std::vector<Finding> findings_;
};

std::string fixed(double value, const char* unit) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 && value != static_cast<int>(value) ? "%.1f %s" : "%.0f %s",
                value, unit);
  return text;
}

}  // namespace

std::vector<Finding> diagnose(const std::vector<HostReport>& reports, const Spec& spec) {
  return Doctor(reports, spec).findings();
}

bool is_well(const std::vector<Finding>& findings) noexcept {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.severity == Severity::problem; });
}

std::string_view to_string(Severity severity) noexcept {
  return severity == Severity::problem ? "problem" : "advice";
}

const Reach* reach_between(const std::vector<HostReport>& reports, std::size_t from,
                           std::size_t to) noexcept {
  if (from >= reports.size()) return nullptr;
  const auto& reaches = reports[from].reaches;
  const auto found =
      std::find_if(reaches.begin(), reaches.end(), [&](const Reach& reach) { return reach.host == to; });
  return found == reaches.end() ? nullptr : &*found;
}

std::string offset_text(std::int64_t nanoseconds) {
  const double seconds = static_cast<double>(std::abs(nanoseconds)) / 1e9;
  const std::string text =
      seconds < 1     ? fixed(static_cast<double>(static_cast<std::int64_t>(seconds * 1e3 + 0.5)), "ms")
      : seconds < 120 ? fixed(seconds, "s")
                      : fixed(seconds / 60, "min");
  if (text == "0 ms") return text;
  return (nanoseconds < 0 ? "-" : "+") + text;
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes == std::numeric_limits<std::uint64_t>::max()) return "unlimited";
  if (bytes < kMiB) return fixed(static_cast<double>(bytes) / 1024, "KiB");
  if (bytes < kGiB) return fixed(static_cast<double>(bytes) / static_cast<double>(kMiB), "MiB");
  return fixed(static_cast<double>(bytes) / static_cast<double>(kGiB), "GiB");
}

}  // namespace fleetrun::launcher::doctor
