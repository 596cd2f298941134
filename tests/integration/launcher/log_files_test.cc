#include "launcher/log_files.h"

#include <unistd.h>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

Plan plan_in(const std::string& log_dir) {
  Plan plan;
  plan.log_dir = plan.log_dir_shown = log_dir;
  plan.processes.resize(1);
  plan.processes[0].log_name = "workerlog.0";
  plan.processes[0].log_alias = "default.abcdef.trainer.0.log";
  return plan;
}

void write_to(const LogFile& log, const std::string& text) {
  REQUIRE(::write(log.fd.value(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("the end of a log is whole lines of this run only") {
  const tests::TempDir directory;
  Plan plan = plan_in(directory.file("a/b"));
  { write_to(open_log_files(plan)[0], "past run\n"); }
  const LogFile log = std::move(open_log_files(plan)[0]);
  CHECK(log.start == 9);
  CHECK(last_lines(log, 100) == "");
  write_to(log, "first\nsecond\nthird");
  CHECK(last_lines(log, 100) == "first\nsecond\nthird");
  CHECK(last_lines(log, 13) == "second\nthird");
  CHECK(last_lines(log, 11) == "third");
  CHECK(last_lines(log, 3) == "ird");
  plan.log_overwrite = true;
  CHECK(open_log_files(plan)[0].start == 0);
}

TEST_CASE("a log directory that is a file is refused by name") {
  const tests::TempDir directory;
  const std::string file = directory.write("file", "");
  CHECK_THROWS_WITH_AS(open_log_files(plan_in(file)),
                       ("log directory " + file + " cannot be opened: Not a directory").c_str(), Error);
}
