#include "runtime/base/process_environment.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>

#include "tests/support/temp_dir.h"

namespace fleetrun {
namespace {

pid_t start(std::vector<std::string> words, std::vector<std::string> variables) {
  std::vector<char*> argv, environment;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : variables) environment.push_back(variable.data());
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  pid_t pid = 0;
  REQUIRE(::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environment.data()) == 0);
  return pid;
}

void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST_CASE("all of the variables have to be there, whole") {
  const pid_t pid = start({"/bin/sleep", "1000"}, {"A=1", "B=two words"});
  CHECK(was_started_with(pid, {"B=two words"}));
  CHECK(was_started_with(pid, {"A=1", "B=two words"}));
  CHECK(!was_started_with(pid, {"A=1", "C=1"}));
  CHECK(!was_started_with(pid, {"B=two"}));
  CHECK(!was_started_with(pid, {}));
  end(pid);
  CHECK(!was_started_with(pid, {"A=1"}));
}

TEST_CASE("a process without variables is not waited for") {
  const pid_t pid = start({"/bin/sleep", "1000"}, {});
  CHECK(!was_started_with(pid, {"A=1"}));
  end(pid);
}

TEST_CASE("a process that goes on to other programs all the time has its variables") {
  const tests::TempDir directory;
  const std::string again = directory.write("again", "exec /bin/sh \"$0\"\n");
  const pid_t pid = start({"/bin/sh", again}, {"A=1"});
  int seen = 0;
  for (int look = 0; look < 2000; ++look) seen += was_started_with(pid, {"A=1"}) ? 1 : 0;
  CHECK(seen == 2000);  // a hundred of them where an empty environment is believed
  end(pid);
}

}  // namespace
}  // namespace fleetrun
