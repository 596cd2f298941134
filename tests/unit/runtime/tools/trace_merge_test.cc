#include "runtime/tools/trace_merge.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::trace;

namespace {

std::string timeline(const std::string& process, std::int64_t start_us, const std::string& events,
                     bool is_ended = true) {
  return R"({"displayTimeUnit": "ms", "otherData": {"process": ")" + process + R"(", "start_us": )" +
         std::to_string(start_us) + R"(}, "traceEvents": [)" + "\n" + events + (is_ended ? "\n]}\n" : "");
}

std::string track(int number, const std::string& name) {
  return R"({"name": "thread_name", "ph": "M", "pid": 1, "tid": )" + std::to_string(number) +
         R"(, "args": {"name": ")" + name + R"("}})";
}

std::string span(const std::string& name, const std::string& category, double from, double duration,
                 int number) {
  std::stringstream text;
  text << R"({"name": ")" << name << R"(", "cat": ")" << category << R"(", "ph": "X", "ts": )" << from
       << R"(, "dur": )" << duration << R"(, "pid": 1, "tid": )" << number << "}";
  return text.str();
}

nlohmann::json events_in(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file).at("traceEvents");
}

nlohmann::json find(const nlohmann::json& events, const std::string& name) {
  for (const auto& event : events)
    if (event.at("name") == name) return event;
  return nullptr;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

}  // namespace

TEST_CASE("bars of different processes lie beside each other as they happened, in a process for each rank") {
  const tests::TempDir dir;
  // The server began a second before, and the trainers' passes one after the other.
  dir.write("server-0.run-1.json",
            timeline("server 0", 5'000'000,
                     track(1, "requests 0") + ",\n" + span("pull", "request", 1'000'010, 5, 1)));
  dir.write("trainer-10.pass-1.json",
            timeline("trainer 10", 6'000'000, track(1, "thread 0") + ",\n" + span("read", "stage", 0, 8, 1)));
  dir.write("trainer-9.pass-2.json",
            timeline("trainer 9", 7'000'000, track(7, "thread 0") + ",\n" + span("push", "stage", 2, 8, 7)));
  dir.write("trainer-9.pass-1.json",
            timeline("trainer 9", 6'000'001,
                     track(1, "reader 0") + ",\n" + track(2, "thread 0") + ",\n" +
                         span("compute", "stage", 0.25, 8, 2) + ",\n" + span("parse", "reader", 1, 2, 1)));
  dir.write("notes.json", "{}");
  dir.write("old.txt", "");
  const auto files = find_timelines(dir.file(""));
  CHECK(files.size() == 4);
  const std::string out = dir.file("trace.json");
  const Summary summary = merge(files, out);
  CHECK(summary.spans == 5);
  CHECK(summary.seconds == doctest::Approx(1.00001));
  REQUIRE(summary.processes.size() == 3);
  CHECK(summary.processes[0].name == "trainer 9");
  CHECK(summary.processes[0].files == 2);
  CHECK(summary.processes[1].name == "trainer 10");
  CHECK(summary.processes[2].name == "server 0");
  const auto events = events_in(out);
  CHECK(find(events, "compute").at("ts") == 1'000'001.25);
  CHECK(find(events, "compute").at("dur") == 8.0);
  CHECK(find(events, "read").at("ts") == 1'000'000.0);
  CHECK(find(events, "pull").at("ts") == 1'000'010.0);
  CHECK(find(events, "push").at("ts") == 2'000'002.0);
  CHECK(find(events, "pull").at("pid") == 3);
  CHECK(find(events, "read").at("pid") == 2);
  // Both passes of a thread are one track.
  CHECK(find(events, "push").at("pid") == find(events, "compute").at("pid"));
  CHECK(find(events, "push").at("tid") == find(events, "compute").at("tid"));
  CHECK(find(events, "parse").at("tid") != find(events, "compute").at("tid"));
  CHECK(!std::filesystem::exists(out + ".unfinished"));
  // What was merged is not a timeline to merge again.
  CHECK(find_timelines(dir.file("")).size() == 4);
}

TEST_CASE("a timeline that was cut off is taken as far as it goes") {
  const tests::TempDir dir;
  const std::string whole =
      track(1, "thread 0") + ",\n" + span("read", "stage", 0, 8, 1) + ",\n" + span("pull", "stage", 8, 1, 1);
  for (std::size_t end = whole.size() - 1; end > whole.size() - 30; end -= 7) {
    dir.write("t-1.json", timeline("trainer 0", 1'000'000, whole.substr(0, end), false));
    const Summary summary = merge({dir.file("t-1.json")}, dir.file("out"));
    CHECK(summary.spans == 1);
    CHECK(summary.processes[0].cut_off == 1);
    CHECK(events_in(dir.file("out")).size() == 5);
    CHECK(summary_text(summary).find("it was killed") != std::string::npos);
  }
  dir.write("t-1.json", timeline("trainer 0", 1'000'000, "", false));
  CHECK(merge({dir.file("t-1.json")}, dir.file("out")).spans == 0);
}

TEST_CASE("the summary says what took the time, the longest first") {
  Summary summary;
  summary.spans = 12;
  summary.seconds = 2.5;
  summary.processes.push_back({"trainer 0",
                               1,
                               0,
                               {{"stage", {{"read", {1, 1e6}}, {"compute", {2, 3e6}}}},
                                {"reader", {{"parse", {1, 5e5}}, {"wait", {1, 1e3}}}},
                                {"operator", {{"mean", {1, 1e5}}, {"linear_grad", {2, 3e5}}}}}});
  summary.processes.push_back({"trainer 1", 1, 0, {{"operator", {{"mean", {1, 1e5}}}}}});
  summary.processes.push_back({"server 0", 1, 0, {{"request", {{"push", {1, 4e5}}}}}});
  CHECK(summary_text(summary) ==
        "3 processes, 12 bars over 2.50 s\n"
        "trainer 0  threads       4.00 s: compute 75 %, read 25 %\n"
        "           readers       0.50 s: parse 100 %\n"
        "server 0   requests      0.40 s: push 100 %\n"
        "\n"
        "operator          calls  milliseconds   share\n"
        "linear_grad           2         300.0  60.0 %\n"
        "mean                  2         200.0  40.0 %\n");
}

TEST_CASE("what is not there, or is none, is one clear error") {
  const tests::TempDir dir;
  const std::string nowhere = dir.file("nowhere"), other = dir.write("other.json", "{}\n");
  CHECK(refusal([&] { find_timelines(nowhere); }) ==
        "the folder " + nowhere +
            " cannot be read: No such file or directory | name the folder that "
            "FLEETRUN_TRACE named");
  CHECK(refusal([&] {
          find_timelines(dir.file(""));
        }).find("no timeline is in " + dir.file("") + " | timelines are written") == 0);
  CHECK(refusal([&] {
          merge({other}, dir.file("out"));
        }).find(other + " is not a timeline of fleetrun's | ") == 0);
  const std::string good = dir.write("t-1.json", timeline("trainer 0", 1, ""));
  CHECK(refusal([&] { merge({good}, nowhere + "/out"); }) ==
        "the merged timeline could not be written to " + nowhere +
            "/out | name a file in a folder that is there, with space left");
}
