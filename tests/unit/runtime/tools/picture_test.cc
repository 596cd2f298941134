#include "runtime/tools/picture.h"

#include <zlib.h>

#include <array>
#include <set>
#include <string>

#include <doctest/doctest.h>

using namespace fleetrun::trace;

namespace {

bool is_white(Colour colour) {
  return colour.red == 255 && colour.green == 255 && colour.blue == 255;
}

std::size_t inked(const Picture& picture) {
  std::size_t count = 0;
  for (std::size_t y = 0; y < picture.height(); ++y)
    for (std::size_t x = 0; x < picture.width(); ++x) count += is_white(picture.at(x, y)) ? 0 : 1;
  return count;
}

std::uint32_t number_at(const std::string& file, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(file.at(at + i));
  return value;
}

}  // namespace

TEST_CASE("a line covers its pixels and no others; what is outside is left out") {
  Picture picture(20, 10);
  picture.line({2, 5}, {18, 5}, 2, {10, 20, 30});
  CHECK(picture.at(10, 4).red == 10);
  CHECK(picture.at(10, 5).blue == 30);
  CHECK(is_white(picture.at(10, 7)));
  CHECK(is_white(picture.at(10, 2)));
  CHECK(is_white(picture.at(0, 5)));
  const std::size_t before = inked(picture);
  picture.line({-50, -50}, {-5, -5}, 2, {});
  picture.line({30, 5}, {90, 5}, 2, {});
  CHECK(inked(picture) == before);
}

TEST_CASE("every printable character has a glyph of its own, within the width that is told") {
  std::set<std::string> seen;
  for (char c = '!'; c <= '~'; ++c) {
    const std::string word(1, c);
    Picture picture(40, 40);
    picture.text(word, {8, 28}, 18, {});
    std::string shape;
    std::size_t rightmost = 0;
    for (std::size_t y = 0; y < 40; ++y)
      for (std::size_t x = 0; x < 40; ++x) {
        shape.push_back(is_white(picture.at(x, y)) ? ' ' : '#');
        if (shape.back() == '#') rightmost = std::max(rightmost, x);
      }
    INFO(word);
    CHECK(inked(picture) > 0);
    CHECK(static_cast<double>(rightmost) < 8 + text_width(word, 18) + 3);
    // Those that no name of a variable needs are a box.
    if (std::string("$;\\^`{}").find(c) == std::string::npos) CHECK(seen.insert(shape).second);
  }
  CHECK(text_width("wide", 10) > text_width("thin", 10));
  CHECK(text_width("\u00e9", 10) == text_width("{", 10));
}

TEST_CASE("a picture is a PNG: its size, and the rows that were drawn") {
  Picture picture(7, 3);
  picture.line({0, 1.5}, {7, 1.5}, 1, {1, 2, 3});
  const std::string file = picture.png();
  CHECK(file.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(file.substr(12, 4) == "IHDR");
  CHECK(number_at(file, 16) == 7);
  CHECK(number_at(file, 20) == 3);
  CHECK(file.substr(24, 5) == std::string("\x08\x02\0\0\0", 5));
  CHECK(number_at(file, 29) == ::crc32(0, reinterpret_cast<const Bytef*>(file.data() + 12), 17));
  const std::uint32_t length = number_at(file, 33);
  REQUIRE(file.substr(37, 4) == "IDAT");
  std::array<unsigned char, 66> rows{};
  uLongf size = rows.size();
  REQUIRE(::uncompress(rows.data(), &size, reinterpret_cast<const Bytef*>(file.data() + 41), length) == Z_OK);
  CHECK(size == 66);  // a filter and seven pixels a row
  CHECK(rows[22] == 0);
  CHECK(rows[23 + 9] == 1);
  CHECK(rows[23 + 10] == 2);
  CHECK(rows[1] == 255);
  CHECK(file.substr(file.size() - 8, 4) == "IEND");
}
