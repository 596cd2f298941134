#include "launcher/logs/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
namespace fs = std::filesystem;

namespace {

constexpr const char* kHint = "choose a directory of your own, with --log_dir";

Plan plan_in(const std::string& log_dir, const std::string& pod = "abcdef") {
  Plan plan;
  plan.log_dir = plan.log_dir_shown = log_dir;
  plan.pod_name = pod;
  for (const char* n : {"0", "1"}) {
    ProcessSpec process;
    process.log_name = std::string("workerlog.") + n;
    process.log_alias = "default." + pod + ".trainer." + n + ".log";
    plan.processes.push_back(process);
  }
  return plan;
}

void unexpected(const std::string& text) {
  FAIL(text);
}

void write_to(const LogFile& log, const std::string& text) {
  REQUIRE(::write(log.fd.value(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What open_first_logs says against `log_dir`.
std::string refusal_of(const std::string& log_dir, const std::string& hint = kHint) {
  try {
    open_first_logs(plan_in(log_dir), unexpected);
  } catch (const Error& error) {
    CHECK(error.hint() == hint);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the end of a log is whole lines") {
  const tests::TempDir directory;
  const LogFile log = std::move(open_first_logs(plan_in(directory.file("a/b")), unexpected)[0]);
  CHECK(log.start == 0);
  CHECK(last_lines(log, 100) == "");
  write_to(log, "first\nsecond\nthird");
  CHECK(last_lines(log, 100) == "first\nsecond\nthird");
  CHECK(last_lines(log, 13) == "second\nthird");
  CHECK(last_lines(log, 11) == "third");
  CHECK(last_lines(log, 3) == "ird");
}

TEST_CASE("each attempt has logs of its own, and the plain names are the newest's") {
  const tests::TempDir directory;
  const std::string top = directory.file("log");
  const Plan plan = plan_in(top);
  const auto first = open_first_logs(plan, unexpected);
  write_to(first[0], "zero\n");
  write_to(first[1], "one\n");
  CHECK(first[1].shown == top + "/workerlog.1");
  CHECK(first[1].path == attempt_directory(plan, 0) + "/workerlog.1");

  const std::size_t only[] = {1};
  const auto second = open_attempt_logs(plan, 1, only, unexpected);
  REQUIRE(second.size() == 1);
  CHECK(second[0].attempt == 1);
  write_to(second[0], "one again\n");
  CHECK(text_of(top + "/workerlog.0") == "zero\n");
  CHECK(text_of(top + "/workerlog.1") == "one again\n");
  CHECK(text_of(top + "/default.abcdef.trainer.1.log") == "one again\n");
  CHECK(text_of(top + "/abcdef/0/workerlog.1") == "one\n");

  const auto other = open_first_logs(plan_in(top, "uvwxyz"), unexpected);
  CHECK(text_of(top + "/workerlog.1") == "");
  CHECK(text_of(top + "/default.abcdef.trainer.1.log") == "one again\n");
  CHECK(text_of(top + "/abcdef/1/workerlog.1") == "one again\n");
  struct stat info = {};
  REQUIRE(::stat((top + "/uvwxyz/0").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  REQUIRE(::fstat(other[0].fd.value(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(info.st_nlink == 3);
  CHECK(::faccessat(open_pod_directory(plan).value(), "1/workerlog.1", F_OK, 0) == 0);
}

TEST_CASE("a log of another launcher, which has one name only, is kept under another") {
  const tests::TempDir directory;
  directory.write("workerlog.0", "years of work\n");
  open_first_logs(plan_in(directory.path()), unexpected);
  CHECK(text_of(directory.file("workerlog.0")) == "");
  CHECK(text_of(directory.file("workerlog.0.before-abcdef")) == "years of work\n");
}

TEST_CASE("what was planted at a name is refused, and nothing behind it is touched") {
  const tests::TempDir directory;
  const std::string precious = directory.write("precious", "precious");
  const std::string top = directory.file("log");
  fs::create_directory(top);
  SUBCASE("a symbolic link at a log's plain name") {
    fs::create_symlink(precious, top + "/workerlog.1");
    CHECK(refusal_of(top) == "log " + top + "/workerlog.1 is a symbolic link to something else");
  }
  SUBCASE("a symbolic link at a log's other name") {
    fs::create_symlink("../precious", top + "/default.abcdef.trainer.0.log");
    CHECK(refusal_of(top) ==
          "log " + top + "/default.abcdef.trainer.0.log is a symbolic link to something else");
  }
  SUBCASE("a directory at a log's name") {
    fs::create_directory(top + "/workerlog.0");
    CHECK(refusal_of(top) == "log " + top + "/workerlog.0 is not a file");
  }
  SUBCASE("a symbolic link at the pod's name") {
    fs::create_directory(directory.file("elsewhere"));
    fs::create_symlink(directory.file("elsewhere"), top + "/abcdef");
    CHECK(refusal_of(top, "choose a directory that you can write to, with --log_dir") ==
          "log directory " + top + "/abcdef cannot be opened: Not a directory");
    CHECK(fs::is_empty(directory.file("elsewhere")));
  }
  SUBCASE("a symbolic link at the file's own name") {
    fs::create_directories(top + "/abcdef/0");
    fs::create_symlink(precious, top + "/abcdef/0/workerlog.0");
    CHECK(refusal_of(top, "choose a directory that you can write to, with --log_dir") ==
          "log " + top + "/abcdef/0/workerlog.0 cannot be made: File exists");
  }
  CHECK(text_of(precious) == "precious");
}

TEST_CASE("a host that comes back to the same attempt writes on where it was") {
  const tests::TempDir directory;
  const std::string top = directory.file("log");
  write_to(open_first_logs(plan_in(top), unexpected)[0], "before\n");
  const std::vector<LogFile> again = open_first_logs(plan_in(top), unexpected);
  CHECK(again[0].start == 7);
  CHECK(again[1].start == 0);
  write_to(again[0], "after\n");
  CHECK(text_of(top + "/workerlog.0") == "before\nafter\n");
  CHECK(text_of(again[0].path) == "before\nafter\n");
  CHECK(std::distance(fs::directory_iterator(top), {}) == 5);  // the pod's directory, and two names for each
}

TEST_CASE("a log directory that anybody could plant things in is refused") {
  const tests::TempDir directory;
  const std::string top = directory.file("log");
  fs::create_directory(top);
  fs::permissions(top, fs::perms(0777));
  CHECK(refusal_of(top) == "log directory " + top + " can be written to by everybody");
  fs::permissions(top, fs::perms(01777));
  CHECK(open_first_logs(plan_in(top), unexpected).size() == 2);
  if (::geteuid() != 0) return;
  REQUIRE(::chown(top.c_str(), 54321, 54321) == 0);
  CHECK(refusal_of(top) == "log directory " + top + " belongs to user 54321, not to user 0");
}

TEST_CASE("a log directory may be a symbolic link of one's own") {
  const tests::TempDir directory;
  fs::create_directory(directory.file("disk"));
  fs::create_directory_symlink("disk", directory.file("log"));
  CHECK(open_first_logs(plan_in(directory.file("log")), unexpected).size() == 2);
  CHECK(fs::exists(directory.file("disk/workerlog.0")));
  fs::create_directory_symlink("nowhere", directory.file("dangling"));
  CHECK(refusal_of(directory.file("dangling"), "choose a directory that you can write to, with --log_dir") ==
        "log directory " + directory.file("dangling") +
            " is a symbolic link that cannot be followed: No such file or directory");
  fs::create_directory_symlink("loop", directory.file("loop"));
  CHECK(refusal_of(directory.file("loop"), "choose a directory that you can write to, with --log_dir") ==
        "log directory " + directory.file("loop") +
            " is a symbolic link that cannot be followed: Too many levels of symbolic links");
  if (::geteuid() != 0) return;
  REQUIRE(::lchown(directory.file("log").c_str(), 54321, 54321) == 0);
  CHECK(refusal_of(directory.file("log")) ==
        "log directory " + directory.file("log") + " is a symbolic link of user 54321");
}

TEST_CASE("a log that cannot be made stops the first attempt, and not a later one") {
  const tests::TempDir directory;
  const std::string file = directory.write("file", "");
  CHECK(refusal_of(file, "choose a directory that you can write to, with --log_dir") ==
        "log directory " + file + " cannot be opened: Not a directory");
  std::vector<std::string> warnings;
  const std::size_t both[] = {0, 1};
  const auto logs =
      open_attempt_logs(plan_in(file), 1, both, [&](const std::string& text) { warnings.push_back(text); });
  REQUIRE(logs.size() == 2);
  CHECK(logs[1].shown == "/dev/null");
  write_to(logs[1], "not seen");
  CHECK(last_lines(logs[1], 10) == "");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "log directory " + file +
            " cannot be opened: Not a directory; what the processes write in attempt 1 is lost");
}

TEST_CASE("a directory that was removed while the job ran is made again") {
  const tests::TempDir directory;
  const Plan plan = plan_in(directory.file("log"));
  open_first_logs(plan, unexpected);
  fs::remove_all(directory.file("log"));
  const std::size_t only[] = {0};
  write_to(open_attempt_logs(plan, 1, only, unexpected)[0], "here\n");
  CHECK(text_of(directory.file("log/workerlog.0")) == "here\n");
}
