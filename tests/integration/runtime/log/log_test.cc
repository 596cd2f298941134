#include "runtime/log/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "runtime/base/unique_fd.h"
#include "tests/support/temp_dir.h"

namespace {

/// What `action` writes on standard error.
template <class Action>
std::string standard_error_of(const Action& action) {
  const fleetrun::tests::TempDir dir;
  const std::string path = dir.write("error.txt", "");
  const fleetrun::UniqueFd own(::dup(STDERR_FILENO));
  const fleetrun::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ::dup2(file.value(), STDERR_FILENO);
  action();
  ::dup2(own.value(), STDERR_FILENO);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a line has level, date, time, thread and source in front, in the documented shape") {
  const std::string line = standard_error_of([] { fleetrun::log::info("running server with rank id: 0"); });
  const std::regex shape(
      R"(I\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ log_test\.cc:\d+\] running server with rank id: 0\n)");
  CHECK_MESSAGE(std::regex_match(line, shape), line);
  CHECK(line.find(" " + std::to_string(::gettid()) + " ") != std::string::npos);
}

TEST_CASE("a warning says so, and braces in the text are text") {
  const std::string line = standard_error_of([] { fleetrun::log::warning("trainer {} waits for {0"); });
  CHECK(line.starts_with("W"));
  CHECK(line.ends_with("] trainer {} waits for {0\n"));
}
