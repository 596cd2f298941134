#include "cli/scheduler_arguments.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

namespace fleetrun::cli {
namespace {

constexpr CommandFlag kKnown[] = {
    {"nodes", 'N', "N", ""}, {"gpus_per_node", 0, "N", ""}, {"submit", 0, "", ""}, {"help", 'h', "", ""}};

using ArgumentReader = std::vector<std::string>;

SchedulerArguments parse(const ArgumentReader& words) {
  return parse_scheduler_arguments("slurm", "Slurm", words, kKnown);
}

std::string refusal(const ArgumentReader& words) {
  try {
    (void)parse(words);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the command's flags are told from fleetrun's, wherever they are before the script") {
  const SchedulerArguments words = parse({"-N2", "--nproc_per_node", "4", "--gpus-per-node=8", "--detach",
                                          "--submit", "train.py", "--nodes", "9", "--submit"});
  CHECK(words.own.value("nodes") == "2");
  CHECK(words.own.value("gpus_per_node") == "8");
  CHECK(words.own.has("submit"));
  CHECK(words.launch ==
        ArgumentReader{"--nproc_per_node", "4", "--detach", "train.py", "--nodes", "9", "--submit"});
  CHECK(words.config.nproc_per_node == 4);
}

TEST_CASE("the value of a flag of fleetrun's is never a flag of the command's") {
  CHECK(parse({"--log_dir", "--submit", "train.py"}).launch.size() == 3);
}

TEST_CASE("what fleetrun would refuse is refused before anything is printed") {
  CHECK(refusal({"--nodes=2"}) == "no script is given");
  CHECK(refusal({"--no_such_flag", "train.py"}) == "unknown flag --no_such_flag");
  CHECK(refusal({"--nproc_per_node=x", "train.py"}).starts_with("--nproc_per_node is 'x'"));
  for (const char* flag : {"--hosts=a,b", "--master=h:1", "--master=etcd://h:1", "--ips=10.0.0.1,10.0.0.2"}) {
    CAPTURE(flag);
    CHECK(refusal({"--nnodes=2", flag, "train.py"}).starts_with("the hosts of this job are Slurm's to give"));
  }
}

TEST_CASE("a name is made of the script's") {
  CHECK(name_of_script("/a/b/Train_it.v2.py", 60) == "train-it");
  CHECK(name_of_script("2_x.py", 60) == "x");
  CHECK(name_of_script("--.py", 60) == "job");
  CHECK(name_of_script("abcdef", 3) == "abc");
  CHECK(name_of_script("pkg.module", 60) == "pkg");
}

}  // namespace fleetrun::cli
