#include "launcher/failure/verdict.h"

#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

constexpr std::int64_t kMs = 1'000'000;

Plan plan_of(std::size_t processes) {
  Plan plan;
  plan.job_id = "default";
  plan.pod_name = "abcdef";
  plan.log_dir_shown = "log";
  plan.processes.resize(processes);
  for (std::size_t i = 0; i < processes; ++i) plan.processes[i].name = "trainer " + std::to_string(i);
  return plan;
}

Report failed_report() {
  Report report;
  report.outcome = Outcome::failed;
  report.exit_status = 1;
  report.cause = "trainer 1 exited with 1: ValueError: x";
  FirstFailure first;
  first.index = 1;
  first.name = "trainer 1";
  first.role = "trainer";
  first.rank = 1;
  first.pid = 4711;
  first.cause.text = "exited with 1: ValueError: x";
  first.cause.signature = "python ValueError: x @ a.py:f";
  first.cause.block = "Traceback\nValueError: \xff\n";
  first.log = "log/workerlog.1";
  first.at = 5000 * kMs;
  first.after_ns = 12'345 * kMs;
  first.followers = {{"exited with 1", false, {"trainer 0"}, 5 * kMs, 480 * kMs}};
  report.first = first;
  return report;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a verdict names the first failure, the cascade and the attempts") {
  JobHistory history;
  history.on_event(event::Contained{"subreaper", "", "", 1});
  history.on_event(event::ProcessStarted{0, 1, 0, 1000 * kMs});
  history.on_event(event::FailureExplained{0, 0, failed_report().first->cause});
  history.on_event(event::RestartDecided{RestartScope::group, 0, 1, {}, "crash, restart 1 of 1"});
  const Moment ended = {6000 * kMs, 1'700'000'000'000'000'000};
  const auto json = nlohmann::json::parse(to_json(failed_report(), plan_of(2), history, ended));
  CHECK(json["schema"] == 1);
  CHECK(json["outcome"] == "failed");
  CHECK(json["exit_status"] == 1);
  CHECK(json["exit_status_of"] == "process");
  CHECK(json["containment"] == "subreaper");
  CHECK(json["seconds"] == 5.0);
  CHECK(json["restarts"] == 1);
  CHECK(json["ended"] == "2023-11-14T22:13:20.000Z");
  const auto& first = json["first_failure"];
  CHECK(first["name"] == "trainer 1");
  CHECK(first["pid"] == 4711);
  CHECK(first["kind"] == "crash");
  CHECK(first["time"] == "2023-11-14T22:13:19.000Z");
  CHECK(first["seconds"] == 12.345);
  CHECK(first["block"] == "Traceback\nValueError: \uFFFD\n");
  CHECK(json["cascade"][0]["processes"] == nlohmann::json({"trainer 0"}));
  CHECK(json["cascade"][0]["last_ms"] == 480.0);
  CHECK(json["attempts"][0]["decision"] == "crash, restart 1 of 1");
  CHECK(json["attempts"][0]["restarted"] == true);
}

TEST_CASE("a verdict of a job that went well has no failure") {
  const auto json = nlohmann::json::parse(to_json({}, plan_of(1), {}, {}));
  CHECK(json["outcome"] == "completed");
  CHECK(json["exit_status"] == 0);
  CHECK(json["exit_status_of"] == "process");
  CHECK(json["cause"].is_null());
  CHECK(json["first_failure"].is_null());
  CHECK(json["cascade"].empty());
}

TEST_CASE("fleetrun's own status is said to be its own") {
  Report report;
  report.outcome = Outcome::stopped;
  report.exit_status = 130;
  report.own_status = true;
  CHECK(nlohmann::json::parse(to_json(report, plan_of(1), {}, {}))["exit_status_of"] == "fleetrun");
}

TEST_CASE("the file appears under both names, readable by its owner alone, and replaces the last one") {
  tests::TempDir dir;
  Plan plan = plan_of(1);
  plan.log_dir = dir.path().string();
  int warnings = 0;
  const auto warn = [&](const std::string&) { ++warnings; };
  write_verdict("one\n", plan, warn);
  plan.pod_name = "ghijkl";
  write_verdict("two\n", plan, warn);
  write_verdict("three\n", plan, warn);
  CHECK(warnings == 0);
  CHECK(text_of(dir.path() / "verdict.json") == "three\n");
  CHECK(text_of(dir.path() / "abcdef/verdict.json") == "one\n");
  CHECK(text_of(dir.path() / "ghijkl/verdict.json") == "three\n");
  struct stat info = {};
  REQUIRE(::stat((dir.path() / "verdict.json").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(info.st_nlink == 2);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path()))
    files += entry.is_regular_file();
  CHECK(files == 3);
}

TEST_CASE("a verdict that cannot be written is one warning") {
  tests::TempDir dir;
  Plan plan = plan_of(1);
  plan.log_dir = dir.write("file", "");
  std::vector<std::string> warnings;
  write_verdict("one\n", plan, [&](const std::string& text) { warnings.push_back(text); });
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].starts_with("verdict.json was not written: "));

  plan.log_dir = dir.file("logs");
  std::filesystem::create_directories(dir.path() / "logs/abcdef/verdict.json/in the way");
  std::filesystem::permissions(dir.path() / "logs/abcdef", std::filesystem::perms::owner_all);
  write_verdict("one\n", plan, [&](const std::string& text) { warnings.push_back(text); });
  CHECK(warnings.size() == 2);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path() / "logs/abcdef"), {}) == 1);
}
