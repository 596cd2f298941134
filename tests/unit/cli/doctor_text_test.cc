#include "cli/doctor_text.h"

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher::doctor;

namespace {

HostReport report(const std::string& name) {
  HostReport report;
  report.name = name;
  report.address = "10.0.0.7";
  report.clock_offset_ns = 2'000'000;
  report.host_check = HostCheck{};
  report.host_check->addresses = {"10.0.0.7"};
  report.host_check->cores = 8;
  report.host_check->devices = {"0", "1"};
  report.host_check->limits = {65'536, 65'536, 1, 1, 1ULL << 33};
  report.host_check->directory = {true, true, true, 1ULL << 30};
  return report;
}

}  // namespace

TEST_CASE("a lone host is shown without what is about others") {
  HostReport here = report("box");
  here.address.clear();
  CHECK(cli::doctor_text({here}, {}, "/job") ==
        "  HOST  ADDRESS   CORES  DEVICES  FILES  /DEV/SHM  DIRECTORY\n"
        "  box   10.0.0.7  8      2        65536  8 GiB     1 GiB free\n"
        "\n"
        "1 host: all well\n");
}

TEST_CASE("several hosts are shown with who can dial whom, and what to do") {
  std::vector<HostReport> reports = {report("h1"), report("h2"), {}};
  reports[0].here = true;
  reports[0].reaches = {{1, "", 250}};
  reports[1].reaches = {{0, "no answer", 0}};
  reports[1].host_check->directory.shared = false;
  reports[2].name = "h3";
  reports[2].login_failure = "down";
  const std::vector<Finding> findings = {
      {Severity::problem, {"h2"}, "ports", "it cannot dial h1: no answer", "look"},
      {Severity::advice, {}, "devices", "they differ", ""}};
  CHECK(cli::doctor_text(reports, findings, "/job") ==
        "  HOST  SSH   ADDRESS   CLOCK  CORES  DEVICES  FILES  /DEV/SHM  DIRECTORY\n"
        "  h1    here  10.0.0.7  +2 ms  8      2        65536  8 GiB     shared, 1 GiB free\n"
        "  h2    ok    10.0.0.7  +2 ms  8      2        65536  8 GiB     its own, 1 GiB free\n"
        "  h3    no\n"
        "  directory: /job\n"
        "\n"
        "TCP between them, both ways\n"
        "  from \\ to  h1  h2      h3\n"
        "  h1         -   0.2 ms  ?\n"
        "  h2         NO  -       ?\n"
        "  h3         ?   ?       -\n"
        "\n"
        "problem: h2: ports: it cannot dial h1: no answer\n"
        "  hint: look\n"
        "advice: devices: they differ\n"
        "\n"
        "3 hosts: 1 problem, 1 piece of advice\n");
}

TEST_CASE("a large number of hosts is shown without the matrix") {
  std::vector<HostReport> reports;
  for (int i = 0; i < 25; ++i) reports.push_back(report("h" + std::to_string(i)));
  CHECK(cli::doctor_text(reports, {}, "/job").find("from \\ to") == std::string::npos);
}
