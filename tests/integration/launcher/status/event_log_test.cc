#include "launcher/status/event_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/support/job_plan.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using fleetrun::tests::job_plan;
using fleetrun::tests::TempDir;

namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("nothing is made before the first flush, and one flush writes all") {
  const TempDir directory;
  const Plan plan = job_plan(1, 0, directory.file("log"));
  std::vector<std::string> warnings;
  EventLog log(plan, [&](const std::string& text) { warnings.push_back(text); });
  log.on_event(event::AttemptBegan{0});
  CHECK(!std::filesystem::exists(directory.file("log")));
  log.flush();
  const std::string path = directory.file("log/abcdef/events.jsonl");
  REQUIRE(lines_of(path).size() == 2);
  CHECK(lines_of(path)[0].find("\"type\":\"job_began\"") != std::string::npos);
  CHECK(lines_of(path)[1].find("\"type\":\"attempt_began\"") != std::string::npos);
  struct stat info = {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  log.on_event(event::JobEnded{0});
  log.flush();
  CHECK(lines_of(path).size() == 3);
  CHECK(warnings.empty());
}

TEST_CASE("what was gathered is written when the log goes") {
  const TempDir directory;
  const Plan plan = job_plan(1, 0, directory.file("log"));
  {
    EventLog(plan, [](const std::string&) {}).on_event(event::JobEnded{3});
  }
  CHECK(lines_of(directory.file("log/abcdef/events.jsonl")).back().ends_with("\"exit_status\":3}"));
}

TEST_CASE("a symbolic link is not followed: one warning, and the job goes on") {
  const TempDir directory;
  const Plan plan = job_plan(1, 0, directory.file("log"));
  std::filesystem::create_directories(directory.file("log/abcdef"));
  directory.write("victim", "precious");
  std::filesystem::create_symlink(directory.file("victim"), directory.file("log/abcdef/events.jsonl"));
  std::vector<std::string> warnings;
  EventLog log(plan, [&](const std::string& text) { warnings.push_back(text); });
  for (int i = 0; i < 3; ++i) {
    log.on_event(event::AllRunning{});
    log.flush();
  }
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("events.jsonl in " + directory.file("log") + "/abcdef cannot be written") == 0);
  CHECK(lines_of(directory.file("victim")) == std::vector<std::string>{"precious"});
}

TEST_CASE(
    "a full disk costs lines and one warning, and what is missing is counted when there is room again") {
  const TempDir directory;
  const Plan plan = job_plan(1, 0, directory.file("log"));
  std::filesystem::create_directories(directory.file("log/abcdef"));
  std::vector<std::string> warnings;
  EventLog log(plan, [&](const std::string& text) { warnings.push_back(text); });
  log.flush();  // opens the file, whose descriptor /dev/full then takes
  int file = -1;
  for (int fd = 3; fd < 64; ++fd) {
    char target[256];
    const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target);
    if (size > 0 && std::string(target, static_cast<std::size_t>(size)).ends_with("events.jsonl")) file = fd;
  }
  REQUIRE(file >= 0);
  const int kept = ::dup(file);
  std::FILE* device = std::fopen("/dev/full", "a");
  REQUIRE(device);
  REQUIRE(::dup2(::fileno(device), file) == file);
  for (int i = 0; i < 3; ++i) {
    log.on_event(event::AttemptBegan{i});
    log.flush();
  }
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].ends_with("No space left on device; the job continues without it"));
  REQUIRE(::dup2(kept, file) == file);
  ::close(kept);
  std::fclose(device);
  log.on_event(event::JobEnded{0});
  log.flush();
  const auto lines = lines_of(directory.file("log/abcdef/events.jsonl"));
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].find("\"type\":\"events_lost\",\"count\":3}") != std::string::npos);
  CHECK(lines[2].find("\"type\":\"job_ended\"") != std::string::npos);
  CHECK(warnings.size() == 1);
}
