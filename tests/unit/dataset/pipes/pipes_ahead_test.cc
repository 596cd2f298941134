#include "dataset/pipes/pipes_ahead.h"

#include <doctest/doctest.h>

#include "tests/support/temp_dir.h"

namespace fleetrun::dataset {
namespace {

// What starts processes is in tests/integration/dataset/pipes/pipe_command_test.cc.
TEST_CASE("a file that needs no process is not opened ahead, and what cannot be opened is left to its pass") {
  const tests::TempDir directory;
  PipesAhead ahead;
  const std::string file = directory.write("a", "1 5\n");
  ahead.start(0, {.file = file});
  CHECK(ahead.take(0, file) == nullptr);
  ahead.start(1, {.file = directory.file("gone"), .pipe = {.command = "sed p"}});
  CHECK(ahead.take(1, directory.file("gone")) == nullptr);
  ahead.start(2, {.file = "s3://nobody/fetches", .pipe = {}});
  CHECK(ahead.take(2, "s3://nobody/fetches") == nullptr);
  ahead.clear();
}

}  // namespace
}  // namespace fleetrun::dataset
