#include "cli/command_flags.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::cli;

namespace {

constexpr CommandFlag kFlags[] = {
    {"follow", 'f', "", "go on"},
    {"log_dir", 0, "DIR", "where"},
    {"lines", 'n', "N", "how many"},
};

CommandArguments parse(const std::vector<std::string>& arguments) {
  return parse_command_arguments("logs", arguments, kFlags);
}

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    const CommandArguments words = parse(arguments);
    whole_number(words, "lines", 1);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what() + (error.hint().empty() ? "" : "; " + error.hint());
  }
  return "accepted";
}

}  // namespace

TEST_CASE("flags and other words of a command") {
  const CommandArguments words = parse({"-f", "job", "--log-dir=a b", "-n5"});
  CHECK(words.has("follow"));
  CHECK(words.value("log_dir") == "a b");
  CHECK(whole_number(words, "lines", 0) == 5);
  CHECK(words.words == std::vector<std::string>{"job"});
  CHECK_FALSE(parse({}).has("follow"));
  CHECK_FALSE(parse({}).value("log_dir"));
  CHECK_FALSE(whole_number(parse({}), "lines", 0));
  CHECK(parse({"--log_dir", "-f"}).value("log_dir") == "-f");
  CHECK(parse({"-n", "7"}).value("lines") == "7");
  CHECK(parse({"--", "-f", "-"}).words == std::vector<std::string>{"-f", "-"});
}

TEST_CASE("wrong flags of a command are refused by name") {
  const std::string hint = "; fleetrun logs --help lists the flags";
  CHECK(refusal({"--folow"}) == "unknown flag --folow of logs" + hint);
  CHECK(refusal({"-x"}) == "unknown flag -x of logs" + hint);
  CHECK(refusal({"--follow=1"}) == "--follow takes no value" + hint);
  CHECK(refusal({"-f1"}) == "-f takes no value" + hint);
  CHECK(refusal({"--lines"}) == "--lines needs a value" + hint);
  CHECK(refusal({"-f", "--follow"}) == "--follow is there twice" + hint);
  CHECK(refusal({"-n", "many"}) == "--lines is 'many': a whole number from 1 is needed");
  CHECK(refusal({"-n0"}) == "--lines is '0': a whole number from 1 is needed");
}

TEST_CASE("flags are described in a table") {
  CHECK(describe_flags(kFlags) ==
        "  -f, --follow            go on\n"
        "      --log_dir=DIR       where\n"
        "  -n, --lines=N           how many\n");
}
