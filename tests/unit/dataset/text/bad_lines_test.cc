#include "dataset/text/bad_lines.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

LineFault fault_at(std::uint64_t line) {
  return {.line = line, .column = 3, .slot = "s", .what = "'x' is not a whole number"};
}

Error error_of(BadLines& lines, const std::string& command, const LineFault& fault) {
  try {
    lines.add("part-0", command, fault);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::usage, "no error");
}

TEST_CASE("fail and skip:N are the ways to treat bad lines, and are written as they are read") {
  CHECK(bad_line_policy_of("fail") == BadLinePolicy{0});
  CHECK(bad_line_policy_of("skip:1") == BadLinePolicy{1});
  CHECK(to_string(bad_line_policy_of("skip:1000000")) == "skip:1000000");
  CHECK(to_string(BadLinePolicy{}) == "fail");
  for (const char* text :
       {"", "skip", "skip:", "skip:0", "skip:-1", "skip:1.5", "skip:x", "skip: 1", "Fail", "fail "}) {
    CAPTURE(text);
    try {
      bad_line_policy_of(text);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      CHECK(std::string(error.what()) ==
            "bad_line='" + std::string(text) + "' is not a way to treat bad lines");
      CHECK(error.hint() == "it is fail, or skip:N for up to N bad lines, N above 0");
    }
  }
}

TEST_CASE("fail: the first bad line is the error") {
  BadLines lines{BadLinePolicy{}};
  const Error error = error_of(lines, "", fault_at(2));
  CHECK(error.kind() == ErrorKind::data);
  CHECK(std::string(error.what()) == "part-0:2:3: slot 's': 'x' is not a whole number");
  CHECK(error.hint() == "mend the data or what prints it; --bad_line=skip:N passes over up to N such lines");
  CHECK(error.context().empty());
  CHECK(error_of(lines, "sed p", fault_at(2)).context() ==
        std::vector<std::string>{"reading the output of the pipe command 'sed p'"});
  CHECK(lines.report() == BadLineReport{});
}

TEST_CASE("skip:N: N are counted with their places, one more is the error and tells of them") {
  BadLines lines(BadLinePolicy{2});
  lines.add("part-0", "", fault_at(2));
  CHECK(to_string(lines.report()) ==
        "1 bad line was skipped: part-0:2:3: slot 's': 'x' is not a whole number");
  lines.add("part-1", "", fault_at(5));
  CHECK(lines.report().count == 2);
  const Error error = error_of(lines, "", fault_at(9));
  CHECK(std::string(error.what()) == "part-0:9:3: slot 's': 'x' is not a whole number");
  CHECK(error.context() ==
        std::vector<std::string>{
            "reading on, as skip:2 says, after 2 bad lines were skipped: part-0:2:3: slot 's': 'x' is "
            "not a whole number; part-1:5:3: slot 's': 'x' is not a whole number"});
  CHECK(lines.report().count == 2);
  lines.clear();
  CHECK(lines.report() == BadLineReport{});
}

TEST_CASE("the places of the first ones only are kept") {
  BadLines lines(BadLinePolicy{1000});
  for (std::uint64_t line = 1; line <= 1000; ++line) lines.add("part-0", "", fault_at(line));
  const BadLineReport report = lines.report();
  CHECK(report.count == 1000);
  REQUIRE(report.places.size() == BadLines::kPlaces);
  CHECK(report.places.back().starts_with("part-0:10:3: "));
  CHECK(to_string(report).starts_with("1000 bad lines were skipped: part-0:1:3: "));
  CHECK(to_string(report).ends_with("; …"));
}

TEST_CASE("packed bytes where text should be: the hint says what to do") {
  BadLines lines{BadLinePolicy{}};
  LineFault fault{.what = "gzip bytes where text should be"};
  fault.packed = true;
  CHECK(error_of(lines, "", fault).hint() ==
        "give the file a name that ends in .gz, .zst, .bz2 or .xz, so that it is unpacked, or unpack it "
        "in the pipe command");
}

}  // namespace
}  // namespace fleetrun::dataset
