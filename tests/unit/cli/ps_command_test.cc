#include "cli/ps_command.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using fleetrun::Error;
using fleetrun::cli::JobArguments;
using fleetrun::cli::split_job_arguments;
using ArgumentReader = std::vector<std::string>;

TEST_CASE("--job is fleetrun's, everything else is fleetrun-ps's") {
  for (const ArgumentReader& spelled : {ArgumentReader{"--job", "j"}, ArgumentReader{"--job=j"}}) {
    ArgumentReader all{"stat"};
    all.insert(all.end(), spelled.begin(), spelled.end());
    all.push_back("--json");
    const JobArguments words = split_job_arguments(all);
    CHECK(words.job == ArgumentReader{"j"});
    CHECK(words.rest == ArgumentReader{"stat", "--json"});
    CHECK(words.needs_job);
  }
  CHECK(split_job_arguments({"get", "t", "--", "--job=j"}).job.empty());
}

TEST_CASE("no job is needed for help, or where the servers are named") {
  for (const ArgumentReader& words :
       {ArgumentReader{}, ArgumentReader{"--help"}, ArgumentReader{"stat", "-h"},
        ArgumentReader{"help", "get"}, ArgumentReader{"--json"}, ArgumentReader{"stat", "--endpoints=h:1"},
        ArgumentReader{"stat", "--endpoints", "h:1"}})
    CHECK_FALSE(split_job_arguments(words).needs_job);
  CHECK(split_job_arguments({"stat"}).needs_job);
  CHECK(split_job_arguments({"get", "help", "1"}).needs_job);
}

TEST_CASE("a --job that is there twice, or without a value, is refused") {
  CHECK_THROWS_WITH_AS(split_job_arguments({"stat", "--job=a", "--job=b"}), "--job is there twice", Error);
  CHECK_THROWS_WITH_AS(split_job_arguments({"stat", "--job"}), "--job needs a value", Error);
}
