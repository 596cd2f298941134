#include "cli/ps_command.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using fleetrun::Error;
using fleetrun::cli::JobWords;
using fleetrun::cli::split_job_words;
using Words = std::vector<std::string>;

TEST_CASE("--job is fleetrun's, everything else is fleetrun-ps's") {
  for (const Words& spelled : {Words{"--job", "j"}, Words{"--job=j"}}) {
    Words all{"stat"};
    all.insert(all.end(), spelled.begin(), spelled.end());
    all.push_back("--json");
    const JobWords words = split_job_words(all);
    CHECK(words.job == Words{"j"});
    CHECK(words.rest == Words{"stat", "--json"});
    CHECK(words.needs_job);
  }
  CHECK(split_job_words({"get", "t", "--", "--job=j"}).job.empty());
}

TEST_CASE("no job is needed for help, or where the servers are named") {
  for (const Words& words :
       {Words{}, Words{"--help"}, Words{"stat", "-h"}, Words{"help", "get"}, Words{"--json"},
        Words{"stat", "--endpoints=h:1"}, Words{"stat", "--endpoints", "h:1"}})
    CHECK_FALSE(split_job_words(words).needs_job);
  CHECK(split_job_words({"stat"}).needs_job);
  CHECK(split_job_words({"get", "help", "1"}).needs_job);
}

TEST_CASE("a --job that is there twice, or without a value, is refused") {
  CHECK_THROWS_WITH_AS(split_job_words({"stat", "--job=a", "--job=b"}), "--job is there twice", Error);
  CHECK_THROWS_WITH_AS(split_job_words({"stat", "--job"}), "--job needs a value", Error);
}
