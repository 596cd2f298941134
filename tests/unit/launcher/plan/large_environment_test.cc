#include "launcher/plan/large_environment.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

Plan plan_of(std::size_t processes) {
  Plan plan;
  plan.log_dir = "/logs";
  plan.pod_name = "abcdef";
  plan.roles.emplace_back();
  for (std::size_t i = 0; i < processes; ++i) {
    ProcessSpec& process = plan.processes.emplace_back();
    process.name = "trainer " + std::to_string(i);
    process.program = "/bin/true";
    process.argv = {"true"};
    process.environment = {{"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:1,127.0.0.1:2"},
                           {"RANK", std::to_string(i)}};
    process.unset = {"PADDLE_BACKUP_ENV_PATH"};
  }
  return plan;
}

std::string refusal(const Plan& plan, const Environ& base, std::size_t max) {
  try {
    check_exec_size(plan, base, max);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a list below the limit stays where it is") {
  Plan plan = plan_of(2);
  const Plan before = plan;
  move_large_lists(plan, 24);
  CHECK(plan == before);
}

TEST_CASE("a list at the limit moves into one file for all, which holds nothing else") {
  Plan plan = plan_of(2);
  move_large_lists(plan, 23);
  REQUIRE(plan.backup);
  CHECK(plan.backup->path == "/logs/abcdef/backup_env.json");
  CHECK(plan.backup->text == "{\n    \"PADDLE_TRAINER_ENDPOINTS\": \"127.0.0.1:1,127.0.0.1:2\"\n}\n");
  for (const ProcessSpec& process : plan.processes) {
    CHECK_FALSE(process.environment.has("PADDLE_TRAINER_ENDPOINTS"));
    CHECK(*process.environment.find("PADDLE_BACKUP_ENV_PATH") == "/logs/abcdef/backup_env.json");
    CHECK(process.unset == std::vector<std::string>{"PADDLE_TRAINER_ENDPOINTS"});
  }
}

TEST_CASE("what the kernel would refuse is refused before, with the largest variable") {
  const Plan plan = plan_of(1);
  const Environ base = {{"BIG", std::string(2000, 'x')}, {"RANK", std::string(9000, 'y')}};
  CHECK(refusal(plan, base, 4000) == "accepted");
  CHECK(refusal(plan, base, 2000) ==
        "trainer 0 cannot be started: arguments and environment have 2116 bytes, and this system allows "
        "2000; the "
        "largest variable is BIG with 2004 | unset what the job does not need, BIG first");
  CHECK(refusal(plan, {{"ONE", std::string(131'067, 'x')}}, 1 << 22) == "accepted");
  CHECK(refusal(plan, {{"ONE", std::string(131'068, 'x')}}, 1 << 22) ==
        "trainer 0 cannot be started: variable ONE has 131072 bytes, and this system allows 131071 | unset "
        "what "
        "the job does not need, ONE first");
}
