#include "launcher/status/metrics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <sstream>

#include "launcher/status/metrics_server.h"
#include "runtime/base/error.h"
#include "tests/support/job_plan.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

JobStatus some_status() {
  const Plan plan = tests::job_plan(2);
  StatusBoard board(plan, 1'000'000'000);
  board.on_event(event::Contained{"pidns", "", "", 5});
  board.on_event(event::ProcessStarted{0, 10, 0, 1});
  board.on_event(event::ProcessStarted{1, 11, 0, 1});
  board.on_event(event::ProcessExited{1, 11, 0, {ExitReason::Kind::signaled, 9, false}, false, 2, 0});
  board.on_event(event::FailureExplained{1, 0, {FailureKind::out_of_memory, "", "", "", ""}});
  board.on_event(event::RestartDecided{RestartScope::process, 1, 1, std::chrono::milliseconds(0), "oom"});
  JobStatus status = board.status(3'500'000'000);
  status.processes[0].usage = ResourceUsage{1.25, 4096, 1, 'S'};
  status.processes[0].log_bytes = 77;
  status.processes[0].heartbeat = {3, 120, 0.5, {{"auc", 0.75}, {"loss", std::nan("")}}};
  return status;
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("the metrics say what the status says") {
  const std::string text = to_prometheus(some_status());
  for (const char* line :
       {"fleetrun_job_info{job_id=\"default\",pod=\"abcdef\",mode=\"collective\",containment=\"pidns\"} 1",
        "fleetrun_job_phase{phase=\"running\"} 1", "fleetrun_job_phase{phase=\"stopping\"} 0",
        "fleetrun_job_uptime_seconds 2.5", "fleetrun_job_restarts_total{kind=\"oom\"} 1",
        "fleetrun_job_restarts_total{kind=\"crash\"} 0", "fleetrun_job_processes{state=\"running\"} 1",
        "fleetrun_job_processes{state=\"waiting\"} 1", "fleetrun_process_up{role=\"trainer\",rank=\"0\"} 1",
        "fleetrun_process_up{role=\"trainer\",rank=\"1\"} 0",
        "fleetrun_process_cpu_seconds_total{role=\"trainer\",rank=\"0\"} 1.25",
        "fleetrun_process_resident_memory_bytes{role=\"trainer\",rank=\"0\"} 4096",
        "fleetrun_process_exit_status{role=\"trainer\",rank=\"1\"} 137",
        "fleetrun_process_log_bytes{role=\"trainer\",rank=\"0\"} 77",
        "fleetrun_training_step{role=\"trainer\",rank=\"0\"} 120",
        "fleetrun_training_step_work_seconds{role=\"trainer\",rank=\"0\"} 0.5",
        "fleetrun_training_value{role=\"trainer\",rank=\"0\",name=\"auc\"} 0.75",
        "fleetrun_training_value{role=\"trainer\",rank=\"0\",name=\"loss\"} NaN"})
    CHECK_MESSAGE(has_line(text, line), line);
  CHECK(text.find("fleetrun_training_step{role=\"trainer\",rank=\"1\"}") == text.npos);
  CHECK(text.find("cpu_seconds_total{role=\"trainer\",rank=\"1\"}") == text.npos);
}

TEST_CASE("every family is declared once, before its samples, and every line ends") {
  const std::string text = to_prometheus(some_status());
  CHECK(text.ends_with("\n"));
  std::set<std::string> declared;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) CHECK(declared.insert(line.substr(7, line.find(' ', 7) - 7)).second);
    if (!line.starts_with("#"))
      CHECK_MESSAGE(declared.count(line.substr(0, line.find_first_of("{ "))) == 1, line);
  }
}

TEST_CASE("labels are quoted") {
  JobStatus status = some_status();
  status.job_id = "a\"b\\c\nd";
  CHECK(to_prometheus(status).find(R"(job_id="a\"b\\c\nd")") != std::string::npos);
}

TEST_CASE("addresses of metrics") {
  CHECK(parse_metrics_address("unix:/run/x") == MetricsAddress{"/run/x", "", 0});
  CHECK(parse_metrics_address(":9090") == MetricsAddress{"", "127.0.0.1", 9090});
  CHECK(parse_metrics_address("0.0.0.0:9090") == MetricsAddress{"", "0.0.0.0", 9090});
  CHECK(parse_metrics_address("[::1]:0") == MetricsAddress{"", "::1", 0});
  CHECK(parse_metrics_address("9090") == MetricsAddress{"", "127.0.0.1", 9090});
  CHECK(parse_metrics_address("0") == MetricsAddress{"", "127.0.0.1", 0});
  CHECK(parse_metrics_address("/run/x") == MetricsAddress{"/run/x", "", 0});
  CHECK(parse_metrics_address(":0") == MetricsAddress{"", "127.0.0.1", 0});
  for (const char* text :
       {"", "unix:", "-1", "99999", "host", "host:", "host:99999", "http://host:1", ":", ":x"}) {
    try {
      parse_metrics_address(text);
      FAIL_CHECK("not refused: ", text);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).starts_with("--metrics=" + std::string(text)));
      CHECK(
          error.hint() ==
          "write --metrics=9090 (on this host alone), --metrics=0.0.0.0:9090 or --metrics=/path/of/a/socket");
    }
  }
}

TEST_CASE("HTTP: only a GET of /metrics is given them") {
  int asked = 0;
  const auto text = [&asked] {
    ++asked;
    return std::string("x 1\n");
  };
  const std::string good = answer_http("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", text);
  CHECK(
      good.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                       "Content-Length: 4\r\nConnection: close\r\n\r\n"));
  CHECK(good.ends_with("\r\n\r\nx 1\n"));
  CHECK(answer_http("GET /metrics?name=x HTTP/1.0\r\n\r\n", text).starts_with("HTTP/1.1 200"));
  const std::string head = answer_http("HEAD /metrics HTTP/1.1\r\n\r\n", text);
  CHECK(head.ends_with("Content-Length: 4\r\nConnection: close\r\n\r\n"));
  CHECK(asked == 3);
  CHECK(answer_http("GET / HTTP/1.1\r\n\r\n", text).starts_with("HTTP/1.1 404"));
  CHECK(answer_http("GET /metricsx HTTP/1.1\r\n\r\n", text).starts_with("HTTP/1.1 404"));
  CHECK(answer_http("POST /metrics HTTP/1.1\r\n\r\n", text).starts_with("HTTP/1.1 405"));
  for (const char* bad : {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "x", ""})
    CHECK_MESSAGE(answer_http(bad, text).starts_with("HTTP/1.1 400"), bad);
  CHECK(asked == 3);
}

TEST_CASE("parameter servers have their tables, calls and times, with histograms that add up") {
  JobStatus status = some_status();
  CHECK(to_prometheus(status).find("fleetrun_ps_") == std::string::npos);
  ServerMetrics metrics;
  metrics.uptime_seconds = 10;
  metrics.tables = {{"emb", 12345, 5000, 400}, {"fc", std::nullopt, 10, 10}};
  metrics.calls = {{"pull", 100, 1, 2, 3000, 4000, 0.5, {{1000, 90}, {20000, 10}}}};
  metrics.staleness = {1.5, 4};
  status.processes[1].metrics = metrics;
  const std::string text = to_prometheus(status);
  for (const char* line :
       {"fleetrun_ps_rows{rank=\"1\",table=\"emb\"} 12345",
        "fleetrun_ps_keys_total{rank=\"1\",table=\"emb\",direction=\"pulled\"} 5000",
        "fleetrun_ps_keys_total{rank=\"1\",table=\"fc\",direction=\"pushed\"} 10",
        "fleetrun_ps_calls_total{rank=\"1\",call=\"pull\"} 100",
        "fleetrun_ps_call_errors_total{rank=\"1\",call=\"pull\"} 1",
        "fleetrun_ps_calls_in_flight{rank=\"1\",call=\"pull\"} 2",
        "fleetrun_ps_bytes_total{rank=\"1\",call=\"pull\",direction=\"out\"} 4000",
        "fleetrun_ps_call_seconds_bucket{rank=\"1\",call=\"pull\",le=\"1.6384e-05\"} 90",
        "fleetrun_ps_call_seconds_bucket{rank=\"1\",call=\"pull\",le=\"+Inf\"} 100",
        "fleetrun_ps_staleness_mean{rank=\"1\"} 1.5", "fleetrun_ps_staleness_highest{rank=\"1\"} 4",
        "fleetrun_ps_call_seconds_sum{rank=\"1\",call=\"pull\"} 0.5",
        "fleetrun_ps_call_seconds_count{rank=\"1\",call=\"pull\"} 100"})
    CHECK_MESSAGE(has_line(text, line), line);
  CHECK(text.find("fleetrun_ps_rows{rank=\"1\",table=\"fc\"}") == std::string::npos);
}
