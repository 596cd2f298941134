#include "launcher/stacks/python_layout.h"

#include <cstring>
#include <vector>

#include <doctest/doctest.h>

using namespace fleetrun::launcher;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// What an interpreter of 3.13 or 3.14 tells: at each place its number.
std::vector<std::uint64_t> told_words() {
  std::vector<std::uint64_t> words(kToldWords);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i;
  std::memcpy(words.data(), "xdebugpy", 8);
  words[2] = 0;
  return words;
}

}  // namespace

TEST_CASE("a line until 3.9: bytes of code, then the lines after them, also backwards") {
  const Bytes table = {0, 1, 8, 2, 4, 0xff, 6, 10};
  for (const auto& [offset, line] : std::vector<std::pair<long, int>>{
           {0, 11}, {6, 11}, {8, 13}, {10, 13}, {12, 12}, {16, 12}, {18, 22}, {900, 22}})
    CHECK_MESSAGE(python_line({3, 8}, table, 10, offset) == line, offset);
  CHECK(python_line({3, 9}, {}, 10, 4) == 10);
}

TEST_CASE("a line of 3.10: bytes of code, and the lines before them; some code has none") {
  const Bytes table = {4, 1, 2, 0x80, 6, 2, 0, 3, 4, 0xfe};
  for (const auto& [offset, line] :
       std::vector<std::pair<long, int>>{{0, 11}, {2, 11}, {4, 11}, {6, 13}, {10, 13}, {12, 14}, {14, 14}})
    CHECK_MESSAGE(python_line({3, 10}, table, 10, offset) == line, offset);
}

TEST_CASE("a line since 3.11: entries of several kinds") {
  const Bytes table = {
      0x80 | 0 << 3 | 1,  0x12,               // two units, the same line, columns in a byte
      0x80 | 11 << 3 | 0, 4,        9,        // one unit, a line further
      0x80 | 15 << 3 | 0,                     // one unit without a line
      0x80 | 13 << 3 | 2, 0x40 | 2, 1,        // three units, by 66 >> 1 lines: two bytes
      0x80 | 14 << 3 | 0, 7,        0, 1, 1,  // one unit, three lines back, with columns
  };
  for (const auto& [offset, line] :
       std::vector<std::pair<long, int>>{{0, 10}, {2, 10}, {4, 11}, {6, 11}, {8, 44}, {12, 44}, {14, 41}})
    CHECK_MESSAGE(python_line({3, 12}, table, 10, offset) == line, offset);
}

TEST_CASE("layouts: of known versions, and as 3.13 and 3.14 tell theirs") {
  for (const int minor : {8, 9, 10, 11, 12}) CHECK(python_layout({3, minor}));
  CHECK_FALSE(python_layout({3, 7}));
  CHECK_FALSE(python_layout({3, 13}));
  std::vector<std::uint64_t> words = told_words();
  const auto of_313 = told_python_layout({3, 13}, words), of_314 = told_python_layout({3, 14}, words);
  REQUIRE((of_313 && of_314));
  CHECK(of_313->first_interpreter == 5);
  CHECK(of_313->threads == 9);
  CHECK(of_313->frames == 23);
  CHECK(of_313->instruction == 31);
  CHECK(of_313->name == 37);
  CHECK(of_313->bytecode == 43);
  CHECK(of_314->frames == 26);
  CHECK(of_314->owner == 36);
  CHECK(of_314->bytecode == 48);
  CHECK_FALSE(told_python_layout({3, 15}, words));
  CHECK_FALSE(told_python_layout({3, 13}, std::span(words).first(10)));
  words[31] = 1ULL << 40;
  CHECK_FALSE(told_python_layout({3, 13}, words));
  words = told_words();
  words[2] = 1;  // without a global lock
  CHECK_FALSE(told_python_layout({3, 13}, words));
  words = told_words();
  words[0] = 0;
  CHECK_FALSE(told_python_layout({3, 13}, words));
}
