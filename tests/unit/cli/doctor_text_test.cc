#include "cli/doctor_text.h"

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher::doctor;

namespace {

Patient patient(const std::string& name) {
  Patient patient;
  patient.name = name;
  patient.address = "10.0.0.7";
  patient.clock_offset_ns = 2'000'000;
  patient.condition = Condition{};
  patient.condition->addresses = {"10.0.0.7"};
  patient.condition->cores = 8;
  patient.condition->devices = {"0", "1"};
  patient.condition->limits = {65'536, 65'536, 1, 1, 1ULL << 33};
  patient.condition->directory = {true, true, true, 1ULL << 30};
  return patient;
}

}  // namespace

TEST_CASE("a lone host is shown without what is about others") {
  Patient here = patient("box");
  here.address.clear();
  CHECK(cli::doctor_text({here}, {}, "/job") ==
        "  HOST  ADDRESS   CORES  DEVICES  FILES  /DEV/SHM  DIRECTORY\n"
        "  box   10.0.0.7  8      2        65536  8 GiB     1 GiB free\n"
        "\n"
        "1 host: all well\n");
}

TEST_CASE("several hosts are shown with who can dial whom, and what to do") {
  std::vector<Patient> patients = {patient("h1"), patient("h2"), {}};
  patients[0].here = true;
  patients[0].reaches = {{1, "", 250}};
  patients[1].reaches = {{0, "no answer", 0}};
  patients[1].condition->directory.shared = false;
  patients[2].name = "h3";
  patients[2].login_failure = "down";
  const std::vector<Finding> findings = {
      {Severity::problem, {"h2"}, "ports", "it cannot dial h1: no answer", "look"},
      {Severity::advice, {}, "devices", "they differ", ""}};
  CHECK(cli::doctor_text(patients, findings, "/job") ==
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
  std::vector<Patient> patients;
  for (int i = 0; i < 25; ++i) patients.push_back(patient("h" + std::to_string(i)));
  CHECK(cli::doctor_text(patients, {}, "/job").find("from \\ to") == std::string::npos);
}
