#include "runtime/base/terminal_text.h"

#include <doctest/doctest.h>

#include <random>

#include "runtime/base/text.h"

using namespace fleetrun;

namespace {

std::string streamed(std::string_view text, std::size_t piece = std::string::npos) {
  TerminalText stream(TerminalText::Mark{"trainer 0 | "});
  std::string out;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    stream.add(text.substr(0, piece), out);
  stream.end(out);
  return out;
}

}  // namespace

TEST_CASE("what acts on a terminal becomes visible, raw and as UTF-8") {
  CHECK(streamed("\x1b]0;title\a") == "^[]0;title^G");
  CHECK(streamed("\x1b]52;c;cm0gLXJm\x1b\\") == "^[]52;c;cm0gLXJm^[\\");
  CHECK(streamed("\x1b[2J\x1b[3J\x1b[1;1H\x1b"
                 "c") == "^[[2J^[[3J^[[1;1H^[c");
  CHECK(streamed("\x9b"
                 "2J") == "\\x9b2J");
  CHECK(streamed("\xc2\x9d"
                 "0;t\xc2\x9c") == "\\xc2\\x9d0;t\\xc2\\x9c");
  CHECK(streamed("\xe2\x80\xaetext") == "\\xe2\\x80\\xaetext");  // right to left
  CHECK(streamed("na\xc3\xafve \xe6\x97\xa5 \xf0\x9f\x9a\x80\n") ==
        "na\xc3\xafve \xe6\x97\xa5 \xf0\x9f\x9a\x80\n");
}

TEST_CASE("colours end with their line, begin again in the next one, and are off while others write") {
  CHECK(streamed("\x1b[31mred\nstill\x1b[0m no\n") == "\x1b[31mred\x1b[0m\n\x1b[31mstill\x1b[0m no\n");
  TerminalText stream(TerminalText::Mark{});
  std::string out;
  stream.add("\x1b[8mhidden", out);
  stream.pause(out);
  CHECK(out == "\x1b[8mhidden\x1b[0m");
  stream.add(" more", out);
  CHECK(out == "\x1b[8mhidden\x1b[0m\x1b[8m more");
}

TEST_CASE("a progress bar repaints its whole line") {
  CHECK(streamed("10%\r20%\r\n") == "10%\r\x1b[K20%\n");
  CHECK(streamed("\r\x1b[K50%") == "\r\x1b[K50%");
  CHECK(streamed("AUNCH INFO\rL") == "AUNCH INFO\r\x1b[KL");
}

TEST_CASE("a line that begins like one of fleetrun's own is marked") {
  CHECK(streamed("LAUNCH INFO 2026 Exit code 0\n") == "trainer 0 | LAUNCH INFO 2026 Exit code 0\n");
  CHECK(streamed("10%\rLAUNCH INFO") == "10%\r\x1b[Ktrainer 0 | LAUNCH INFO");
  CHECK(streamed("   LAUNCH ERROR") == "   trainer 0 | LAUNCH ERROR");  // a wide line wraps
  CHECK(streamed("first failure: trainer 1") == "trainer 0 | first failure: trainer 1");
  CHECK(streamed("LAU\xe2\x80\x8bNCH INFO") == "trainer 0 | LAUNCH INFO");
  CHECK(streamed("\x1b[32mLAU\x1b[33mNCH INFO") ==
        "\x1b[32m\x1b[0mtrainer 0 | LAUNCH \x1b[32m\x1b[33mINFO\x1b[0m");
  CHECK(streamed("LLAUNCH LAUNCHED LAUN\n") == "LLAUNCH LAUNCHED LAUN\n");
  CHECK(terminal_text("a\nLAUNCH INFO b\n", "> ") == "a\n> LAUNCH INFO b\n");
  CHECK(terminal_text("LAUNCH INFO b\n") == "LAUNCH INFO b\n");
}

TEST_CASE("cuts change nothing, and no bytes of anybody's act on a terminal") {
  const std::string_view pieces[] = {"LAUNCH ", "\x1b", "[",    "3",    "m",    "K",      "]",
                                     "\xc2",    "\x9b", "\xe2", "\x80", "\xae", "\r",     "\n",
                                     "\b",      "L",    " ",    "\a",   "\xff", "first f"};
  std::mt19937 draw(20);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 24; ++i) text += pieces[draw() % std::size(pieces)];
    const std::string whole = streamed(text);
    CHECK(streamed(text, 1) == whole);
    for (std::string_view rest = whole; !rest.empty();) {
      std::size_t length = std::max<std::size_t>(utf8_length(rest), 1);
      if (rest.front() == '\x1b') length = rest.find_first_not_of("[0123456789;:", 1) + 1;
      if (rest.front() == '\x1b')
        REQUIRE((rest[length - 1] == 'm' || rest.substr(0, 3) == "\x1b[K"));
      else
        REQUIRE((rest.front() == '\n' || rest.front() == '\r' || !acts_on_terminal(rest.substr(0, length))));
      if (length == 1) REQUIRE(static_cast<unsigned char>(rest.front()) < 0x80);
      rest.remove_prefix(length);
    }
  }
}
