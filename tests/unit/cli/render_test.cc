#include "cli/render.h"

#include <doctest/doctest.h>

using namespace fleetrun;

namespace {

launcher::Plan small_plan() {
  launcher::Plan plan;
  plan.job_id = "ctr";
  plan.pod_name = "abcdef";
  plan.log_dir = "/my logs";
  plan.log_dir_shown = "../my logs";
  launcher::ProcessSpec process;
  process.identity.trainers = {{"127.0.0.1", 8000}};
  process.name = "trainer 0";
  process.program = "/bin/echo";
  process.argv = {"echo", "it's", "$HOME"};
  process.cwd = "/";
  process.log_name = "workerlog.0";
  process.log_alias = "ctr.abcdef.trainer.0.log";
  process.environment.set("A", "b c");
  process.unset = {"B", "C"};
  plan.processes.push_back(process);
  return plan;
}

}  // namespace

TEST_CASE("as text, a plan says who runs what where") {
  CHECK(cli::to_text(small_plan()) ==
        "job ctr, mode collective, pod abcdef, 1 processes\n"
        "\n"
        "trainer 0 at 127.0.0.1:8000\n"
        "  command  echo 'it'\\''s' '$HOME'\n"
        "  program  /bin/echo\n"
        "  log      ../my logs/workerlog.0 = ctr.abcdef.trainer.0.log\n"
        "  env      A='b c'\n");
}

TEST_CASE("what a process is bound to is shown, and done by the shell script") {
  launcher::Plan plan = small_plan();
  plan.processes[0].cpus = {0, 1, 2, 8};
  plan.processes[0].memory_nodes = {1};
  CHECK(cli::to_text(plan).find("\n  bound to cpus 0-2,8, memory node 1\n") != std::string::npos);
  CHECK(cli::to_shell(plan).find("\n  exec taskset -c 0-2,8 /bin/echo ") != std::string::npos);
}

TEST_CASE("as a shell script, every word is quoted where it has to be") {
  const std::string script = cli::to_shell(small_plan());
  CHECK(script.find("mkdir -p '/my logs/abcdef/0'\n") != std::string::npos);
  CHECK(script.find("  export A='b c'\n  unset B C\n  exec /bin/echo 'it'\\''s' '$HOME'\n) </dev/null >'/my "
                    "logs/abcdef/0/workerlog.0' 2>&1 &\n") != std::string::npos);
}
