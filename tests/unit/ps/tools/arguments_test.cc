#include "ps/tools/arguments.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::error_of;
using fleetrun::tests::text_of;
using Command = ToolRequest::Command;

namespace {

std::string refusal(const std::vector<std::string>& words) {
  return text_of([&] { parse_tool_arguments(words); });
}

}  // namespace

TEST_CASE("the commands and their flags are read, wherever they stand and however they are spelled") {
  ToolRequest request =
      parse_tool_arguments({"--endpoints=h:1,h:2", "--secret-file", "/s", "stat", "--json", "--watch"});
  CHECK(request.command == Command::stat);
  CHECK(request.endpoints == std::vector<std::string>{"h:1", "h:2"});
  CHECK(request.secret_file == "/s");
  CHECK(request.json);
  CHECK(request.watch);
  request = parse_tool_arguments({"save", "/d", "--mode=2", "--endpoints", "h:1", "--timeout=500ms"});
  CHECK(request.command == Command::save);
  CHECK(request.words == std::vector<std::string>{"/d"});
  CHECK(request.mode == 2);
  CHECK(request.timeout == std::chrono::milliseconds(500));
  request = parse_tool_arguments({"export", "/d", "--since=17", "--endpoints=h:1"});
  CHECK(request.command == Command::export_rows);
  CHECK(request.since == 17);
  request = parse_tool_arguments({"shrink", "--insecure", "--endpoints=h:1"});
  CHECK(request.command == Command::shrink);
  CHECK(request.insecure);
}

TEST_CASE("keys are whole numbers of 64 bits, negative ones as trainers' int64 are") {
  const ToolRequest request = parse_tool_arguments(
      {"get", "--endpoints=h:1", "--", "emb", "0", "18446744073709551615", "-1", "-9223372036854775808"});
  CHECK(request.words.at(0) == "emb");
  CHECK(request.keys == std::vector<std::uint64_t>{0, ~0ull, ~0ull, 1ull << 63});
  CHECK(refusal({"get", "--endpoints=h:1", "emb", "18446744073709551616"}) ==
        "'18446744073709551616' is not a key: a whole number of 64 bits");
  CHECK(refusal({"get", "--endpoints=h:1", "emb", "1x"}).starts_with("'1x' is not a key"));
  CHECK(refusal({"get", "--endpoints=h:1", "emb", ""}).starts_with("'' is not a key"));
}

TEST_CASE("help is given for all and for each, also without servers") {
  CHECK(parse_tool_arguments({}).command == Command::help);
  CHECK(parse_tool_arguments({"--help"}).about.empty());
  CHECK(parse_tool_arguments({"get", "-h"}).about == "get");
  CHECK(parse_tool_arguments({"help", "save"}).about == "save");
  for (const char* about : {"", "stat", "get", "shrink", "save", "export"})
    CHECK(tool_help(about).starts_with("usage: fleetrun ps "));
}

TEST_CASE("what is wrong is named, with where to read on") {
  CHECK(refusal({"export", "d", "--endpoints=h:1"}) ==
        "export needs an absolute path, not 'd': each server writes on its own host, from a directory of its "
        "own");
  CHECK(refusal({"export", "/d", "--since=0", "--endpoints=h:1"}) ==
        "--since=0 is not the number of an export");
  CHECK(refusal({"save", "/d", "--since=1", "--endpoints=h:1"}) == "--since belongs to export");
  CHECK(refusal({"stats", "--endpoints=h:1"}) == "there is no command 'stats'; did you mean stat?");
  CHECK(refusal({"stat", "--endpoints=h:1", "x"}) == "stat takes no 'x'");
  CHECK(refusal({"stat", "--colour"}) == "there is no flag --colour");
  CHECK(refusal({"stat", "--json=1"}) == "--json takes no value");
  CHECK(refusal({"stat", "--endpoints"}) == "--endpoints needs a value");
  CHECK(refusal({"get", "--endpoints=h:1"}) == "get needs the name of a table");
  CHECK(refusal({"save", "--endpoints=h:1"}) == "save needs one directory");
  CHECK(refusal({"save", "here", "--endpoints=h:1"}).starts_with("save needs an absolute path, not 'here'"));
  CHECK(parse_tool_arguments({"save", "s3://bucket/d", "--endpoints=h:1"}).words[0] == "s3://bucket/d");
  CHECK(refusal({"save", "/d", "--mode=4", "--endpoints=h:1"}) == "--mode=4 is not 0, 1, 2 or 3");
  CHECK(refusal({"shrink", "a", "b", "--endpoints=h:1"}).starts_with("shrink takes one table"));
  CHECK(refusal({"get", "emb", "--watch", "--endpoints=h:1"}) == "--watch belongs to stat");
  CHECK(refusal({"stat", "--mode=1", "--endpoints=h:1"}) == "--mode belongs to save");
  CHECK(refusal({"stat", "--timeout=never", "--endpoints=h:1"}) == "--timeout=never is not a time");
  CHECK(refusal({"stat"}) == "fleetrun-ps does not know the servers' endpoints");
  CHECK(refusal({"--json"}) == "fleetrun ps needs a command");
  CHECK(error_of([] { parse_tool_arguments({"stats"}); }).hint() ==
        "fleetrun ps --help lists the commands and their flags");
}
