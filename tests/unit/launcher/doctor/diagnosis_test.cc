#include "launcher/doctor/diagnosis.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "launcher/doctor/probe.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher::doctor;

namespace {

HostCheck healthy(const std::string& name, const std::string& address) {
  HostCheck host_check;
  host_check.version = "1";
  host_check.host_name = name;
  host_check.own_name = {name, {address}, "", address};
  host_check.addresses = {address};
  host_check.clock_ns = 1;
  host_check.cores = 8;
  host_check.limits = {65'536, 65'536, 65'536, 1ULL << 33, 1ULL << 33};
  host_check.directory = {true, true, true, 1ULL << 40};
  return host_check;
}

std::vector<HostReport> three() {
  std::vector<HostReport> reports(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    reports[i].name = "h" + std::to_string(i + 1);
    reports[i].address = "10.0.0." + std::to_string(i + 1);
    reports[i].host_check = healthy(reports[i].name, reports[i].address);
    reports[i].clock_offset_ns = 1000;
    for (std::uint32_t other = 0; other < 3; ++other)
      if (other != i) reports[i].reaches.push_back({other, "", 300});
  }
  return reports;
}

const Spec kSpec{.master = "", .directory = "/job", .secret = false};

/// "problem h1,h2 check: what"
std::vector<std::string> said(const std::vector<HostReport>& reports, const Spec& spec = kSpec) {
  std::vector<std::string> lines;
  for (const Finding& finding : diagnose(reports, spec)) {
    std::string hosts;
    for (const std::string& host : finding.hosts) hosts += (hosts.empty() ? "" : ",") + host;
    lines.push_back(std::string(to_string(finding.severity)) + " " + hosts + " " + finding.check + ": " +
                    finding.what);
    CHECK_FALSE(finding.hint.empty());
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("hosts without a fault get no findings") {
  CHECK(said(three()).empty());
  CHECK(is_well(diagnose(three(), kSpec)));
}

TEST_CASE("a host that nobody can log in to is a problem, and what is not known of it is not") {
  auto reports = three();
  reports[1].host_check.reset();
  reports[1].login_failure = "it does not answer";
  reports[1].login_hint = "is it up?";
  CHECK(said(reports) == Lines{"problem h2 ssh: it does not answer"});
  CHECK_FALSE(is_well(diagnose(reports, kSpec)));
}

TEST_CASE("a name that leads to the loopback, to nobody, or to another host is told apart") {
  auto reports = three();
  reports[0].host_check->own_name.addresses = {"127.0.1.1"};
  reports[1].host_check->own_name = {"h2", {}, "Name or service not known", ""};
  reports[2].host_check->own_name.addresses = {"10.0.0.9"};
  CHECK(said(reports) ==
        Lines{"problem h3 name: its own name h3 is 10.0.0.9, which is not its address",
              "advice h1 name: its own name h1 is 127.0.1.1 there, which others cannot dial",
              "advice h2 name: it does not know its own name h2: Name or service not known"});
}

TEST_CASE("names of others that are not known, and hosts without a route, are said by name") {
  auto reports = three();
  reports[0].host_check->names = {{"h2", {}, "Name or service not known", ""}, {"h3", {"10.0.0.3"}, "", ""}};
  CHECK(said(reports) == Lines{"problem h1 route: it has no route to h3",
                               "advice h1 name: it does not know h2: Name or service not known"});
}

TEST_CASE("a firewall is seen in the direction in which it works") {
  auto reports = three();
  reports[0].reaches[1].failure = "no answer (a firewall?)";  // h1 → h3
  CHECK(said(reports) ==
        Lines{"problem h1 ports: it cannot dial h3: no answer (a firewall?) (the other direction works)"});
  for (Reach& reach : reports[1].reaches) reach.failure = "Connection refused";               // h2 → h1, h3
  reports[0].reaches[0].failure = reports[2].reaches[1].failure = "no answer (a firewall?)";  // and back
  reports[0].reaches[1].failure.clear();
  CHECK(said(reports) == Lines{"problem h1,h3 ports: it cannot dial h2: no answer (a firewall?)",
                               "problem h2 ports: it cannot dial h1, h3: Connection refused"});
}

TEST_CASE("clocks that differ by more than is known of them are said") {
  auto reports = three();
  reports[1].clock_offset_ns = -1'500'000'000;
  reports[2].clock_offset_ns = 1'500'000'000;
  reports[2].clock_error_ns = 900'000'000;
  CHECK(said(reports) == Lines{"advice h2 clock: its clock differs from this host's by -1.5 s"});
  reports = three();
  for (HostReport& report : reports) report.host_check->clock_synchronized = false;
  CHECK(said(reports) == Lines{"advice h1,h2,h3 clock: nothing keeps its clock"});
}

TEST_CASE("limits that jobs run into are said, and how to raise them") {
  auto reports = three();
  reports[0].host_check->limits.open_files = 1024;
  reports[1].host_check->limits.shared_memory_bytes = 64 << 20;
  reports[2].host_check->limits.shared_memory_bytes = 0;
  reports[2].host_check->limits.processes = 100;
  reports[2].host_check->has_rdma = true;
  reports[2].host_check->limits.locked_bytes = 64 << 10;
  CHECK(said(reports) == Lines{"problem h3 /dev/shm: there is no /dev/shm",
                               "advice h1 open files: a process may open 1024 files only",
                               "advice h2 /dev/shm: it has 64 MiB only",
                               "advice h3 processes: the user may have 100 processes and threads only",
                               "advice h3 locked memory: a process may lock 64 KiB only, and there is RDMA"});
}

TEST_CASE("directories, devices and their numbers are compared") {
  auto reports = three();
  reports[0].host_check->directory.exists = false;
  reports[1].host_check->directory.writable = false;
  reports[2].host_check->devices = {"0", "1"};
  reports[2].host_check->unusable_devices = 1;
  CHECK(said(reports) ==
        Lines{"problem h1 directory: there is no /job",
              "problem h3 devices: 1 of its devices may not be opened",
              "advice h2 directory: /job cannot be written to",
              "advice  devices: the hosts have different numbers of devices: 0 on h1, h2; 2 on h3"});
}

TEST_CASE("secrets are compared where the launchers prove them") {
  auto reports = three();
  reports[0].host_check->secret = reports[1].host_check->secret = "0123abcd";
  reports[2].host_check->secret = "ffffffff";
  CHECK(said(reports).empty());
  const Spec spec{.master = "10.0.0.1:6768", .directory = "/job", .secret = true};
  CHECK(said(reports, spec) == Lines{"problem  secret: the user's secret is not the same on all hosts: it "
                                     "differs between h1, h2 and h3"});
  reports[2].host_check->secret.clear();
  CHECK(said(reports, spec) == Lines{"problem h3 secret: there is no secret of the user"});
}

TEST_CASE("a master that is none of the hosts, or cannot be dialed, is a problem") {
  auto reports = three();
  for (HostReport& report : reports) report.host_check->master = MasterFacts{};
  const Spec spec{.master = "10.0.0.9:6768", .directory = "/job", .secret = false};
  CHECK(said(reports, spec) == Lines{"problem  master: 10.0.0.9:6768 is an address of none of these hosts"});
  reports[0].host_check->master->ours = true;
  CHECK(said(reports, spec).empty());
  reports[2].host_check->master->failure = "it cannot dial 10.0.0.9:6768: No route to host";
  CHECK(said(reports, spec) == Lines{"problem h3 master: it cannot dial 10.0.0.9:6768: No route to host"});
}

TEST_CASE("amounts are shown as people write them") {
  CHECK(offset_text(0) == "0 ms");
  CHECK(offset_text(-400'000) == "0 ms");
  CHECK(offset_text(3'000'000) == "+3 ms");
  CHECK(offset_text(-1'200'000'000) == "-1.2 s");
  CHECK(offset_text(3'600'000'000'000) == "+60 min");
  CHECK(bytes_text(64 << 10) == "64 KiB");
  CHECK(bytes_text(64 << 20) == "64 MiB");
  CHECK(bytes_text(3ULL << 29) == "1.5 GiB");
  CHECK(bytes_text(~0ULL) == "unlimited");
}

TEST_CASE("conditions and questions come back from their JSON") {
  HostCheck host_check = healthy("h1", "10.0.0.1");
  host_check.names = {{"h2", {"10.0.0.2"}, "", "10.0.0.1"}};
  host_check.devices = {"0"};
  host_check.limits.processes = ~0ULL;
  host_check.secret_failure = "it is readable by others";
  CHECK(host_check_from_json(to_json(host_check)) == host_check);
  host_check.master = MasterFacts{true, true, "somebody listens"};
  CHECK(host_check_from_json(to_json(host_check)) == host_check);
  const Questions questions{{"h1", "h2"}, "/job", "marker", "etcd://h", true};
  CHECK(questions_from_json(to_json(questions)) == questions);
  for (const char* text : {"", "{}", "[]", "{\"version\":1}"}) {
    CAPTURE(text);
    try {
      host_check_from_json(text);
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(std::string(error.what()) == "malformed report from a host's doctor");
      CHECK(error.hint() == "install the same version on every host");
    }
  }
}

TEST_CASE("answers of a probe are read, and what is none is refused") {
  CHECK(answer_from_json(R"({"clock": 7})").clock_ns == 7);
  CHECK(answer_from_json(R"({"endpoints": "10.0.0.1:80,10.0.0.1:81"})").endpoints ==
        std::vector<Endpoint>{{"10.0.0.1", 80}, {"10.0.0.1", 81}});
  CHECK(answer_from_json(R"({"failure": "a\u0007b"})").failure == "a\\x07b");
  CHECK(answer_from_json(R"({"reaches": [[2, "", 300], [1, "no", 0]]})").reaches ==
        std::vector<Reach>{{2, "", 300}, {1, "no", 0}});
  for (const char* text : {"", "7", R"({"clock": "x"})", R"({"reaches": [[1]]})", R"({"endpoints": "x"})"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(answer_from_json(text), Error);
  }
}
