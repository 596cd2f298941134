#include "launcher/failure/verdict.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <exception>

#include <nlohmann/json.hpp>

#include "launcher/logs/log_files.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/own_file.h"
#include "runtime/base/unique_fd.h"
#include "runtime/base/version.h"
#include "runtime/base/write_all.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kName = "verdict.json";

std::int64_t now_ns(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// "2024-05-01T12:00:00.123Z"
std::string iso_time(std::int64_t wall_ns) {
  const time_t seconds = wall_ns / 1'000'000'000;
  tm utc = {};
  ::gmtime_r(&seconds, &utc);
  char date[32], text[48];
  ::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text, sizeof text, "%s.%03dZ", date, static_cast<int>(wall_ns / 1'000'000 % 1000));
  return text;
}

/// Of nanoseconds, to the microsecond.
double seconds(std::int64_t ns) {
  return std::round(static_cast<double>(ns) / 1e3) / 1e6;
}

double milliseconds(std::int64_t ns) {
  return std::round(static_cast<double>(ns) / 1e3) / 1e3;
}

Json first_failure(const FirstFailure& first, Moment ended) {
  Json json;
  json["name"] = first.name;
  json["role"] = first.role;
  json["rank"] = first.rank;
  json["pid"] = first.pid > 0 ? Json(first.pid) : Json();
  json["attempt"] = first.attempt;
  json["kind"] = to_string(first.cause.kind);
  json["text"] = first.cause.text;
  json["signature"] = first.cause.signature;
  json["detail"] = first.cause.detail;
  json["hint"] = first.cause.hint;
  json["block"] = first.cause.block;
  json["log"] = first.log;
  json["time"] = first.at > 0 ? Json(iso_time(ended.wall_ns - (ended.monotonic_ns - first.at))) : Json();
  json["seconds"] = seconds(first.after_ns);
  return json;
}

Json cascade(const std::vector<Followers>& followers) {
  Json list = Json::array();
  for (const Followers& group : followers) {
    Json json;
    json["text"] = group.said;
    json["asked"] = group.asked;
    json["processes"] = group.names;
    json["first_ms"] = milliseconds(group.first_ns);
    json["last_ms"] = milliseconds(group.last_ns);
    list.push_back(std::move(json));
  }
  return list;
}

Json attempts(const JobHistory& history, const Plan& plan) {
  Json list = Json::array();
  for (const AttemptHistory& attempt : history.attempts()) {
    Json json;
    json["attempt"] = attempt.attempt;
    json["name"] = plan.processes[attempt.index].name;
    json["kind"] = to_string(attempt.cause.kind);
    json["text"] = attempt.cause.text;
    json["signature"] = attempt.cause.signature;
    json["restarted"] = attempt.restarted;
    json["decision"] = attempt.decision;
    list.push_back(std::move(json));
  }
  return list;
}

[[noreturn]] void fail(const char* call) {
  throw Error(ErrorKind::host, std::string(call) + ": " + std::generic_category().message(errno));
}

/// Under a name of its own first, then renamed over.
void write_in(int directory, const std::string& text) {
  const std::string temporary = std::string(".") + kName + "." + std::to_string(::getpid());
  ::unlinkat(directory, temporary.c_str(), 0);
  const UniqueFd file(open_own_at(directory, temporary, O_WRONLY | O_CREAT | O_EXCL, Readers::owner));
  if (!file) fail("open");
  try {
    if (!write_all(file.value(), text)) fail("write");
    if (::renameat(directory, temporary.c_str(), directory, kName) != 0) fail("rename");
  } catch (...) {
    ::unlinkat(directory, temporary.c_str(), 0);
    throw;
  }
}

/// LOG_DIR/verdict.json is a convenience: a symbolic link where hard links cannot be made.
void link_in(int log_directory, int pod_directory, const std::string& pod_name) {
  const std::string temporary = std::string(".") + kName + "." + std::to_string(::getpid());
  ::unlinkat(log_directory, temporary.c_str(), 0);
  const std::string target = pod_name + "/" + kName;
  if (::linkat(pod_directory, kName, log_directory, temporary.c_str(), 0) != 0 &&
      ::symlinkat(target.c_str(), log_directory, temporary.c_str()) != 0)
    fail("link");
  if (::renameat(log_directory, temporary.c_str(), log_directory, kName) != 0) {
    ::unlinkat(log_directory, temporary.c_str(), 0);
    fail("rename");
  }
  ::unlinkat(log_directory, temporary.c_str(), 0);  // a rename between two names of one file leaves both
}

}  // namespace

Moment this_moment() {
  return {now_ns(CLOCK_MONOTONIC), now_ns(CLOCK_REALTIME)};
}

std::string to_json(const Report& report, const Plan& plan, const JobHistory& history, Moment ended) {
  Json json;
  json["schema"] = kVerdictSchema;
  json["fleetrun"] = FLEETRUN_VERSION;
  json["job"] = plan.job_id;
  json["pod"] = plan.pod_name;
  json["outcome"] = to_string(report.outcome);
  json["exit_status"] = report.exit_status;
  json["exit_status_of"] =
      report.outcome == Outcome::completed || !report.own_status ? "process" : "fleetrun";
  json["cause"] = report.cause.empty() ? Json() : Json(report.cause);
  json["ended"] = iso_time(ended.wall_ns);
  json["seconds"] = history.began_at() > 0 ? seconds(ended.monotonic_ns - history.began_at()) : 0.0;
  json["containment"] = history.containment();
  json["restarts"] = history.restarts();
  json["first_failure"] = report.first ? first_failure(*report.first, ended) : Json();
  json["cascade"] = report.first ? cascade(report.first->followers) : Json::array();
  json["attempts"] = attempts(history, plan);
  return json_text(json, 2) + "\n";
}

void write_verdict(const std::string& text, const Plan& plan,
                   const std::function<void(const std::string&)>& warn) noexcept {
  try {
    const UniqueFd pod = open_pod_directory(plan);
    const UniqueFd log(::openat(pod.value(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!log) fail("open");
    write_in(pod.value(), text);
    link_in(log.value(), pod.value(), plan.pod_name);
  } catch (const std::exception& error) {
    warn(std::string("verdict.json was not written: ") + error.what());
  }
}

}  // namespace fleetrun::launcher
