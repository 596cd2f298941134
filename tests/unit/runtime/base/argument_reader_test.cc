#include "runtime/base/argument_reader.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using fleetrun::ArgumentReader;
using fleetrun::Error;

TEST_CASE("a flag is one however it is spelled, and its value in the same word or the next") {
  for (const std::vector<std::string>& spelled : {std::vector<std::string>{"--pipe_command", "a b"},
                                                  {"--pipe-command", "a b"},
                                                  {"--pipe-command=a b"}}) {
    ArgumentReader words(spelled, "see --help");
    REQUIRE(words.next());
    CHECK(words.is_flag());
    CHECK(words.word() == "--pipe_command");
    CHECK(words.value() == "a b");
    CHECK_FALSE(words.next());
  }
}

TEST_CASE("words after -- are no flags, and a single - is none") {
  const std::vector<std::string> all{"-", "--", "--json", "--"};
  ArgumentReader words(all, "see --help");
  for (const char* expected : {"-", "--json", "--"}) {
    REQUIRE(words.next());
    CHECK_FALSE(words.is_flag());
    CHECK(words.word() == expected);
  }
  CHECK_FALSE(words.next());
}

TEST_CASE("a value too much, too few, or that is no number is refused by the flag's name") {
  const std::vector<std::string> json{"--json=1"}, none{"--rows"}, zero{"-n", "0"};
  ArgumentReader switched(json, "see --help"), missing(none, "see --help"), number(zero, "see --help");
  switched.next();
  missing.next();
  number.next();
  CHECK_FALSE(switched.is_switch("--rows"));
  CHECK_THROWS_WITH_AS(switched.is_switch("--json"), "--json takes no value", Error);
  CHECK_THROWS_WITH_AS(missing.value(), "--rows needs a value", Error);
  CHECK_THROWS_WITH_AS(number.number(1), "-n=0 is not a whole number from 1 on", Error);
  try {
    missing.refuse("there is no flag --rows");
  } catch (const Error& error) {
    CHECK(error.kind() == fleetrun::ErrorKind::usage);
    CHECK(std::string(error.what()) == "there is no flag --rows");
    CHECK(error.hint() == "see --help");
  }
}
