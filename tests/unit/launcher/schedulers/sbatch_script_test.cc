#include "launcher/schedulers/sbatch_script.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

SbatchSpec spec() {
  SbatchSpec spec;
  spec.name = "train";
  spec.nodes = "2";
  spec.fleetrun = "/usr/bin/fleetrun";
  spec.arguments = {"--nproc_per_node=4", "train.py", "it's", "a\n#SBATCH --nodes=99", ""};
  spec.made_by = "fleetrun slurm --nodes 2 train.py 'a\n#SBATCH --nodes=99'";
  return spec;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the batch script asks for one agent per host, a notice, and to be started again") {
  SbatchSpec all = spec();
  all.time = "1-12:00:00";
  all.gpus_per_node = "a100:8";
  all.notice_seconds = 90;
  all.options = {"--exclusive"};
  const std::string script = sbatch_script(all);
  CHECK(script.starts_with("#!/bin/bash\n"));
  for (const char* line :
       {"\n#SBATCH --job-name=train\n", "\n#SBATCH --nodes=2\n", "\n#SBATCH --ntasks-per-node=1\n",
        "\n#SBATCH --gpus-per-node=a100:8\n", "\n#SBATCH --time=1-12:00:00\n",
        "\n#SBATCH --signal=B:USR1@90\n", "\n#SBATCH --requeue\n", "\n#SBATCH --open-mode=append\n",
        "\n#SBATCH --exclusive\n", "scontrol requeue"}) {
    CAPTURE(line);
    CHECK(has(script, line));
  }
  all.requeue = false;
  CHECK(has(sbatch_script(all), "\n#SBATCH --no-requeue\n"));
  CHECK_FALSE(has(sbatch_script(all), "scontrol requeue"));
}

TEST_CASE("no argument becomes a line of its own before the first command") {
  const std::string script = sbatch_script(spec());
  CHECK(script.find("\n#SBATCH --nodes=99") > script.find("\ncommand=(\n"));
  CHECK(has(script, "\n  'it'\\''s'\n"));
  CHECK(has(script, "\n  ''\n)\n"));
}

TEST_CASE("what sbatch could not read back from its script is refused") {
  for (const char* bad : {"a b", "a\"b", "a'b", "a\nb", "", "#x"}) {
    SbatchSpec named = spec();
    named.name = bad;
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(sbatch_script(named), doctest::Contains("sbatch could not read that from a script"),
                         Error);
  }
  SbatchSpec other = spec();
  other.options = {"exclusive"};
  CHECK_THROWS_WITH_AS(sbatch_script(other), doctest::Contains("an option of sbatch's is needed"), Error);
  other = spec();
  other.time = "soon";
  CHECK_THROWS_WITH_AS(sbatch_script(other), doctest::Contains("a time of Slurm's is needed"), Error);
}

TEST_CASE("times are read as Slurm reads them") {
  for (const char* good : {"30", "1:30", "1:00:00", "2-1", "2-1:30", "2-01:30:00", "UNLIMITED"})
    CHECK(is_slurm_time(good));
  for (const char* bad : {"", "x", "1h", "1:2:3:4", "-1", "2-", ":", "1:", "1-2-3", "0x10"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_slurm_time(bad));
  }
}

}  // namespace fleetrun::launcher
