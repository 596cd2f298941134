#include "launcher/ui/log_document.h"

#include <unistd.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

void write_log(const std::string& path, const std::string& text, bool anew = false) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, anew ? std::ios::trunc : std::ios::app) << text;
}

std::string numbered(int first, int last) {
  std::string text;
  for (int i = first; i < last; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

struct Pod {
  tests::TempDir dir;
  std::string path = dir.file("pod");
  LogDocument::Cache cache;

  LogDocument document(std::vector<std::string> roles = {}) {
    LogSpec spec;
    spec.pod_directory = path;
    spec.roles = std::move(roles);
    return LogDocument(spec, cache);
  }
  ArrivedLines arrived(const std::string& cursor) const {
    LogSpec spec;
    spec.pod_directory = path;
    return arrived_lines(spec, cursor);
  }
};

using Lines = std::vector<std::string>;
using Arrived = std::vector<std::pair<std::size_t, std::string>>;

}  // namespace

TEST_CASE("logs are one document, read by the numbers of lines") {
  Pod pod;
  write_log(pod.path + "/0/workerlog.0", numbered(0, 1000));
  write_log(pod.path + "/0/workerlog.1", "x\n\n\x1b[31mred\x1b[0m\n10%\r20%\rdone\nopen");
  const LogDocument document = pod.document();
  CHECK(document.count() == 1005);
  CHECK(document.is_whole());
  REQUIRE(document.parts().size() == 2);
  CHECK(document.parts()[1].first == 1000);
  CHECK(document.parts()[1].lines == 5);
  CHECK(document.lines(255, 2) == Lines{"line 255", "line 256"});
  CHECK(document.lines(998, 100) == Lines{"line 998", "line 999", "x", "", "red", "done", "open"});
  CHECK(document.lines(1005, 10).empty());
  CHECK(pod.document({"server"}).count() == 0);
}

TEST_CASE("a document grows with its logs, and begins anew where one was cut") {
  Pod pod;
  const std::string log = pod.path + "/0/workerlog.0";
  write_log(log, "a\nb");
  CHECK(pod.document().lines(0, 9) == Lines{"a", "b"});
  write_log(log, "c\nd\n");
  CHECK(pod.document().lines(0, 9) == Lines{"a", "bc", "d"});
  write_log(log, "new\n", true);
  CHECK(pod.document().lines(0, 9) == Lines{"new"});
}

TEST_CASE("a log is read through no link, and none of a pipe") {
  Pod pod;
  write_log(pod.path + "/secret", "secret\n");
  std::filesystem::create_directories(pod.path + "/0");
  std::filesystem::create_symlink(pod.path + "/secret", pod.path + "/0/workerlog.0");
  CHECK(pod.document().count() == 0);
  CHECK(pod.arrived("").lines.empty());
}

TEST_CASE("what is looked for is found forward and back") {
  Pod pod;
  write_log(pod.path + "/0/workerlog.0", numbered(0, 3000));
  write_log(pod.path + "/0/workerlog.1", "needle\n" + numbered(0, 10));
  const LogDocument document = pod.document();
  CHECK(document.find("line 2500", 0, false).line == 2500);
  CHECK(document.find("needle", 0, false).line == 3000);
  CHECK(document.find("needle", 3001, false).line == std::nullopt);
  CHECK(document.find("line 7", 3011, true).line == 3008);
  CHECK(document.find("line 7", 3000, true).line == 799);
  CHECK(document.find("line 7", 7, true).line == std::nullopt);
  const auto none = document.find("nothing", 0, false);
  CHECK(!none.line);
  CHECK(!none.go_on);
}

TEST_CASE("a search of long logs stops, and says where to go on") {
  Pod pod;
  std::string block;
  while (block.size() < 1'000'000) block += std::string(9'999, 'x') + "\n";
  for (int i = 0; i < 80; ++i) write_log(pod.path + "/0/workerlog.0", block);
  write_log(pod.path + "/0/workerlog.0", "needle\n");
  const LogDocument document = pod.document();
  auto found = document.find("needle", 0, false);
  REQUIRE(found.go_on);
  CHECK(document.find("needle", *found.go_on, false).line == document.count() - 1);
  found = document.find("nothing", document.count(), true);
  REQUIRE(found.go_on);
  found = document.find("nothing", *found.go_on, true);
  CHECK(!found.go_on);
}

TEST_CASE("lines that arrive come once, through rotated logs and later attempts") {
  Pod pod;
  const std::string log = pod.path + "/0/workerlog.0";
  write_log(log, "a\nb\n");
  ArrivedLines arrived = pod.arrived("");
  CHECK(arrived.processes == std::vector<std::pair<std::string, int>>{{"trainer", 0}});
  CHECK(arrived.lines == Arrived{{0, "a"}, {0, "b"}});
  write_log(log, "c\nhal");
  arrived = pod.arrived(arrived.cursor);
  CHECK(arrived.lines == Arrived{{0, "c"}});
  CHECK(pod.arrived(arrived.cursor).lines.empty());
  write_log(log, "f\nlast");
  std::filesystem::rename(log, log + ".1");
  write_log(log, "rotated\n");
  write_log(pod.path + "/0/serverlog.0", "late\n");
  Arrived all;
  for (int turn = 0; turn < 4; ++turn) {
    arrived = pod.arrived(arrived.cursor);
    for (const auto& [index, text] : arrived.lines) all.emplace_back(arrived.processes[index].second, text);
    if (turn == 1) write_log(pod.path + "/1/workerlog.0", "again\n");
  }
  CHECK(all == Arrived{{0, "late"}, {0, "half"}, {0, "last"}, {0, "rotated"}, {0, "again"}});
  CHECK(pod.arrived("nonsense~a.b~.1.2~trainer.0.x.y").lines.size() == 2);
}
