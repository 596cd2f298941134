#include "launcher/host/host_claims.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "runtime/base/unique_fd.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using fleetrun::tests::TempDir;
namespace fs = std::filesystem;

namespace {

using Held = std::map<std::string, std::string>;

std::vector<std::string> claims_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".claims") names.push_back(entry.path().filename());
  }
  return names;
}

}  // namespace

TEST_CASE("what a job holds is known to the next one until it ends") {
  const TempDir root;
  const std::vector<std::string> directories = {root.file("run")};
  {
    HostClaims first(directories);
    CHECK(first.held().empty());
    first.hold("abcdef", {"gpu 0", "cpu 3"});
    CHECK(HostClaims(directories).held() == Held{{"cpu 3", "abcdef"}, {"gpu 0", "abcdef"}});
    HostClaims second(directories);
    second.hold("ghijkl", {"gpu 1"});
    CHECK(HostClaims(directories).held().size() == 3);
  }
  CHECK(HostClaims(directories).held().empty());
  CHECK(claims_in(directories[0]).empty());
}

TEST_CASE("a claim that nobody holds any more does not count, and is removed") {
  const TempDir root;
  const std::vector<std::string> directories = {root.file("run")};
  HostClaims made(directories);
  made.let_choose();
  std::ofstream(directories[0] + "/abcdef.1.claims") << "gpu 0\n";
  CHECK(HostClaims(directories).held().empty());
  CHECK(claims_in(directories[0]).empty());
}

TEST_CASE("while one job chooses, another waits, and then knows what it took") {
  const TempDir root;
  const std::vector<std::string> directories = {root.file("run")};
  HostClaims first(directories);
  auto second = std::async(std::launch::async, [&] { return HostClaims(directories).held(); });
  first.hold("abcdef", {"gpu 0"});
  CHECK(second.get() == Held{{"gpu 0", "abcdef"}});
}

TEST_CASE("the process in the background goes on holding what the foreground held") {
  const TempDir root;
  const std::vector<std::string> directories = {root.file("run")};
  int staying[2], living[2];
  REQUIRE(::pipe2(staying, O_CLOEXEC) == 0);
  REQUIRE(::pipe2(living, O_CLOEXEC) == 0);
  const UniqueFd stays(staying[0]), lives(living[0]);
  UniqueFd let_go(staying[1]), life(living[1]);
  const pid_t foreground = ::fork();
  if (foreground == 0) {
    HostClaims claims(directories);
    claims.hold("abcdef", {"gpu 0"});
    if (::fork() == 0) {
      let_go.reset();
      char end = 0;
      static_cast<void>(!::read(stays.value(), &end, 1));
    }
    ::_exit(0);
  }
  life.reset();
  int status = 0;
  REQUIRE(::waitpid(foreground, &status, 0) == foreground);
  CHECK(HostClaims(directories).held() == Held{{"gpu 0", "abcdef"}});
  let_go.reset();
  char end = 0;
  CHECK(::read(lives.value(), &end, 1) == 0);  // the background has ended
  CHECK(HostClaims(directories).held().empty());
}

TEST_CASE("without a safe directory nobody is known to hold anything") {
  HostClaims claims({"/nowhere/run"});
  claims.hold("abcdef", {"gpu 0"});
  CHECK(claims.held().empty());
}
