#include "launcher/logs/line_splitter.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace fleetrun::launcher;

namespace {

/// The lines of `text` and, last, what is unfinished, when it comes in pieces of the sizes that `cut` gives.
template <class Cut>
std::vector<LineSpan> spans_of(std::string_view text, Cut cut) {
  LineSplitter splitter(100);
  std::vector<LineSpan> spans;
  for (std::size_t at = 0; at < text.size();) {
    std::string_view piece = text.substr(at, cut());
    at += piece.size();
    while (!piece.empty()) {
      if (const auto line = splitter.next(piece)) spans.push_back(*line);
    }
    CHECK(splitter.position() == static_cast<off_t>(100 + at));
  }
  if (const auto rest = splitter.unfinished()) spans.push_back(*rest);
  return spans;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const LineSpan& span : spans_of(text, [&] { return text.size(); })) {
    REQUIRE(span.begin >= 100);
    REQUIRE(span.end >= span.begin);
    lines.emplace_back(text.substr(static_cast<std::size_t>(span.begin - 100),
                                   static_cast<std::size_t>(span.end - span.begin)));
  }
  return lines;
}

using Lines = std::vector<std::string>;

/// What the splitter has to find, told slowly.
Lines expected_lines(const std::string& text) {
  Lines lines;
  std::string frame, newest;
  bool begun = false;
  const auto end_frame = [&] {
    if (!frame.empty()) newest = std::exchange(frame, {});
  };
  for (const char c : text) {
    begun = c != '\n';
    if (c == '\n' || c == '\r')
      end_frame();
    else
      frame.push_back(c);
    if (c == '\n') lines.push_back(std::exchange(newest, {}));
  }
  end_frame();
  if (begun) lines.push_back(newest);
  return lines;
}

}  // namespace

TEST_CASE("lines end with newlines, and the last one may have none") {
  CHECK(lines_of("") == Lines{});
  CHECK(lines_of("\n") == Lines{""});
  CHECK(lines_of("one\n\nthree") == Lines{"one", "", "three"});
  CHECK(lines_of(std::string("a\0b\nc\0", 6)) == Lines{std::string("a\0b", 3), std::string("c\0", 2)});
}

TEST_CASE("of a line that is repainted, the last frame counts") {
  CHECK(lines_of("10%\r20%\r100%\n") == Lines{"100%"});
  CHECK(lines_of("\r10%\r20%") == Lines{"20%"});
  CHECK(lines_of("10%\r20%\r\r") == Lines{"20%"});
  CHECK(lines_of("dos\r\nunix\n\r\n") == Lines{"dos", "unix", ""});
  LineSplitter splitter;
  std::string_view text = "10%\n";
  splitter.next(text);
  CHECK_FALSE(splitter.repainted());
  text = "20%\r";
  splitter.next(text);
  CHECK(splitter.repainted());
}

TEST_CASE("lines do not depend on how the bytes are cut") {
  std::mt19937 random(20240511);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (unsigned left = random() % 60; left > 0; --left) text.push_back("ab\r\n\r"[random() % 5]);
    const auto whole = spans_of(text, [&] { return text.size(); });
    CHECK(lines_of(text) == expected_lines(text));
    CHECK(spans_of(text, [] { return 1u; }) == whole);
    CHECK(spans_of(text, [&] { return 1 + random() % 7; }) == whole);
  }
}
