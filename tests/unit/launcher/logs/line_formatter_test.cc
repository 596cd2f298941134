#include "launcher/logs/line_formatter.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace fleetrun::launcher;

namespace {

template <class Cut>
std::string formatted(std::string_view line, bool guarded, Cut cut) {
  LineFormatter formatter(guarded);
  std::string out;
  formatter.begin("> ", out);
  for (std::size_t at = 0; at < line.size();) {
    const std::string_view part = line.substr(at, cut());
    formatter.add(part, out);
    at += part.size();
  }
  formatter.end(out);
  return out;
}

std::string guarded(std::string_view line) {
  const std::string text = formatted(line, true, [&] { return line.size(); });
  REQUIRE(text.starts_with("> "));
  REQUIRE(text.ends_with('\n'));
  return text.substr(2, text.size() - 3);
}

}  // namespace

TEST_CASE("unguarded, bytes stay what they are") {
  const std::string bytes("\x1b[2J\0\x9b\a\xff", 8);
  CHECK(formatted(bytes, false, [] { return 3u; }) == "> " + bytes + "\n");
}

TEST_CASE("guarded, what acts on a terminal becomes visible") {
  CHECK(guarded("plain\ttext") == "plain\ttext");
  CHECK(guarded(std::string("a\0b", 3)) == "a^@b");
  CHECK(guarded("\a\x7f\x1b]0;title\a") == "^G^?^[]0;title^G");
  CHECK(guarded("\x1b[2J\x1b[H") == "^[[2J^[[H");
  CHECK(guarded("\x9b"
                "2J") == "\\x9b2J");
  CHECK(guarded("\xc2\x9b"
                "2J") == "\\xc2\\x9b2J");
  CHECK(guarded("\x1b") == "^[");
  CHECK(guarded("\x1b\x1b[1m") == "^[\x1b[1m\x1b[0m");
  CHECK(guarded("\x1b[" + std::string(60, '1') + "m") == "^[[" + std::string(60, '1') + "m");
}

TEST_CASE("colours pass, and end with the line") {
  CHECK(guarded("\x1b[31mred\x1b[0m") == "\x1b[31mred\x1b[0m");
  CHECK(guarded("\x1b[38;2;1;2;3mtrue\x1b[4:3m") == "\x1b[38;2;1;2;3mtrue\x1b[4:3m\x1b[0m");
  LineFormatter formatter(true);
  std::string out;
  formatter.add("\x1b[31mred", out);
  formatter.end(out);
  formatter.add("next", out);
  formatter.end(out, "");
  CHECK(out == "\x1b[31mred\x1b[0m\nnext");
}

TEST_CASE("UTF-8 passes where it is well-formed") {
  CHECK(guarded("Größe 大小 😀") == "Größe 大小 😀");
  CHECK(guarded("\xc3") == "\\xc3");
  CHECK(guarded("\xc3(") == "\\xc3(");
  CHECK(guarded("\xc0\xaf") == "\\xc0\\xaf");
  CHECK(guarded("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  CHECK(guarded("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(guarded("\xe5\xa4\xe5\xa4\xa7") == "\\xe5\\xa4大");
}

TEST_CASE("a guarded line does not depend on how it is cut, and is safe") {
  std::mt19937 random(77);
  constexpr char kBytes[] = "a1;[m\x1b\x1b[3m\xc3\xa4\xe5\xa4\xa7\x9b\xf0\x9f\x98\x80\xff\0\t\a";
  const std::string alphabet(kBytes, sizeof kBytes - 1);
  for (int round = 0; round < 3000; ++round) {
    std::string line;
    for (unsigned left = random() % 40; left > 0; --left)
      line.push_back(alphabet[random() % alphabet.size()]);
    const std::string whole = formatted(line, true, [&] { return line.size(); });
    CHECK(formatted(line, true, [] { return 1u; }) == whole);
    CHECK(formatted(line, true, [&] { return 1 + random() % 5; }) == whole);
    // Guarding what was guarded changes nothing but the colours that it ends.
    const std::string again = guarded(whole.substr(2, whole.size() - 3));
    CHECK(
        (again + "\n" == whole.substr(2) || again + "\n" == whole.substr(2, whole.size() - 3) + "\x1b[0m\n"));
  }
}

TEST_CASE("a line is cut by the columns that it takes") {
  CHECK(cut_to_columns("12345", 5) == "12345");
  CHECK(cut_to_columns("123456", 5) == "12345");
  CHECK(cut_to_columns("大小x", 4) == "大小");
  CHECK(cut_to_columns("大小x", 3) == "大");
  CHECK(cut_to_columns("ab\tc", 8) == "ab\t");
  CHECK(cut_to_columns("e\xcc\x81tude", 3) == "e\xcc\x81tu");
  CHECK(cut_to_columns("\x1b[31mred\x1b[0m", 2) == "\x1b[31mre\x1b[0m");
}
