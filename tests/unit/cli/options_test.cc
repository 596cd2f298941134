#include "cli/options.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using fleetrun::Error;
using fleetrun::cli::CommandLine;
using fleetrun::cli::parse_command_line;

TEST_CASE("flags end at the script, and what follows is the script's") {
  const CommandLine line =
      parse_command_line({"--server_num=1", "--trainer-num", "2", "train.py", "--server_num", "9", "-h"});
  CHECK(line.options.values.at("server_num") == "1");
  CHECK(line.options.values.at("trainer_num") == "2");
  CHECK(line.options.script == "train.py");
  CHECK(line.options.script_args == std::vector<std::string>{"--server_num", "9", "-h"});
  CHECK_FALSE(line.help);
}

TEST_CASE("other spellings are the same setting, remembered as written") {
  const CommandLine line = parse_command_line({"--gpus", "0,1", "--worker-num=2", "x"});
  CHECK(line.options.values.at("devices") == "0,1");
  CHECK(line.options.values.at("trainer_num") == "2");
  CHECK(line.options.spelled.at("devices") == "--gpus");
  CHECK(line.options.spelled.at("trainer_num") == "--worker-num");
}

TEST_CASE("values may be negative or empty") {
  const CommandLine line = parse_command_line({"--rank", "-1", "--log_dir=", "--job_id", "", "x"});
  CHECK(line.options.values.at("rank") == "-1");
  CHECK(line.options.values.at("log_dir") == "");
  CHECK(line.options.values.at("job_id") == "");
  CHECK(line.options.script == "x");
}

TEST_CASE("a value keeps its dashes and underscores") {
  CHECK(parse_command_line({"--log-dir=my-logs_1", "x"}).options.values.at("log_dir") == "my-logs_1");
}

TEST_CASE("--dry-run alone means text, and leaves the script alone") {
  const CommandLine line = parse_command_line({"--dry-run", "x"});
  CHECK(line.options.values.at("dry_run") == "text");
  CHECK(line.options.script == "x");
}

TEST_CASE("an unknown flag comes with the nearest known one") {
  try {
    parse_command_line({"--sever-num=1", "x"});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "unknown flag --sever-num");
    CHECK(error.hint() == "did you mean --server_num?");
  }
  CHECK_THROWS_WITH_AS(parse_command_line({"--log_dir=a", "--log-dir=b", "x"}), "--log_dir is given twice",
                       Error);
  CHECK_THROWS_AS(parse_command_line({"--log_dir"}), Error);
  CHECK_FALSE(parse_command_line({}).options.script);
}
