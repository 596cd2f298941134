#include "runtime/base/text.h"

#include <doctest/doctest.h>

using namespace fleetrun;

TEST_CASE("a list is split at every separator, and an empty text is an empty list") {
  CHECK(split("", ',').empty());
  CHECK(split("a", ',') == std::vector<std::string>{"a"});
  CHECK(split("a,,b,", ',') == std::vector<std::string>{"a", "", "b", ""});
  CHECK(join(split("a,,b,", ','), ",") == "a,,b,");
}

TEST_CASE("only plain ASCII digits are a number") {
  CHECK(parse_integer("0") == 0);
  CHECK(parse_integer("-12") == -12);
  CHECK(parse_integer("9223372036854775807") == 9223372036854775807);
  for (const char* text :
       {"", " 4", "4 ", "+4", "0x4", "4.0", "1e3", "٣", "--1", "9223372036854775808", "4\n", "abc", "-"})
    CHECK_MESSAGE(!parse_integer(text), text);
  CHECK_FALSE(parse_integer(std::string_view("4\0", 2)));
}

TEST_CASE("a duration is in seconds unless it says otherwise") {
  CHECK(parse_duration_ms("30") == 30'000);
  CHECK(parse_duration_ms("0.25") == 250);
  CHECK(parse_duration_ms("1.5s") == 1'500);
  CHECK(parse_duration_ms("20ms") == 20);
  CHECK(parse_duration_ms("0") == 0);
  for (const char* text :
       {"", "s", "ms", "-1", "1.", ".5", "1e3", "1m", "1 s", "nan", "99999999999999999999", "2592001"})
    CHECK_MESSAGE(!parse_duration_ms(text), text);
}

TEST_CASE("the nearest word is suggested, and none when nothing is near") {
  const std::vector<std::string> words = {"server_num", "servers", "trainer_num", "log_dir"};
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ab", "ba") == 1);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(nearest("sever_num", words) == "server_num");
  CHECK(nearest("logdir", words) == "log_dir");
  CHECK_FALSE(nearest("zzzzzz", words));
  const std::vector<std::string> short_words = {"ui", "top"};
  CHECK_FALSE(nearest("run", short_words));
  CHECK(nearest("tpo", short_words) == "top");
}

TEST_CASE("words are quoted for the shell only where they have to be") {
  CHECK(shell_quoted("a/b=c") == "a/b=c");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("it's $(id)") == "'it'\\''s $(id)'");
  CHECK(shell_quoted("~x") == "'~x'");
}

TEST_CASE("texts are shown as Python shows them") {
  CHECK(python_repr("a") == "'a'");
  CHECK(python_repr("it's") == "\"it's\"");
  CHECK(python_repr("a'\"b") == "'a\\'\"b'");
  CHECK(python_repr("a\n\\\x01") == "'a\\n\\\\\\x01'");
  const std::vector<std::string> arguments = {"a", "--b=1"};
  CHECK(python_repr(arguments) == "['a', '--b=1']");
}

TEST_CASE("control bytes do not reach an error message") {
  CHECK(printable("a\nb\x1b[0m") == "a\\x0ab\\x1b[0m");
  CHECK(printable("abcdef", 3) == "abc…");
}

TEST_CASE("the length of a character of UTF-8 is known, and broken ones are told") {
  CHECK(utf8_length("a") == 1);
  CHECK(utf8_length("\xc3\xa9x") == 2);
  CHECK(utf8_length("\xe2\x82\xac") == 3);
  CHECK(utf8_length("\xf0\x9f\x98\x80") == 4);
  for (const char* text : {"", "\x80", "\xc0\xaf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xed\xa0\x80",
                           "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82"})
    CHECK_MESSAGE(utf8_length(text) == 0, text);
}
