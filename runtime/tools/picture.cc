#include "runtime/tools/picture.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::trace {
namespace {

// A glyph: strokes with blanks between them, each a list of points, two digits each: x from the left, and y
// from the deepest descender (0) over the baseline (2) and the height of an x (6) to that of a capital (8).
constexpr int kBaseline = 2;
constexpr double kCapital = 6, kGap = 1.7, kBlank = 2.2;

constexpr std::array<std::string_view, 10> kDigits{
    "120307182837332212",          "172822 1232", "07183847460242",
    "07183847463515 354443321203", "32380444",    "480805354443321203",
    "473818070312324344351504",    "084812",      "15060718384746351504031232434435",
    "031232434738180706153546",
};

constexpr std::array<std::string_view, 26> kCapitals{
    "022842 1434",
    "02083847463505 3544433202",
    "4738180703123243",
    "02082846442202",
    "48080242 0535",
    "480802 0535",
    "47381807031232434525",
    "0802 4842 0545",
    "0828 1812 0222",
    "4843321203",
    "0802 480542",
    "080242",
    "0208254842",
    "02084248",
    "120307183847433212",
    "02083847463505",
    "120307183847433212 2442",
    "02083847463505 2542",
    "473818070615354443321203",
    "0848 2822",
    "080312324348",
    "082248",
    "0812263248",
    "0842 0248",
    "082548 2522",
    "08480242",
};

constexpr std::array<std::string_view, 26> kSmall{
    "3632 3526160503122233",
    "0802 0516263533221203",
    "3526160503122233",
    "3832 3526160503122233",
    "04343526160503122233",
    "38281712 0626",
    "3631201001 3526160503122233",
    "0802 0516263532",
    "0602 0808",
    "161100 1818",
    "0802 360432",
    "080312",
    "0602 05162522 25364542",
    "0602 0516263532",
    "160503122233352616",
    "0600 0516263533221203",
    "3630 3526160503122233",
    "0602 051626",
    "3616051424332202",
    "18132232 0626",
    "0603122233 3632",
    "062246",
    "0612253246",
    "0632 0236",
    "0622 462210",
    "06360232",
};

constexpr std::string_view kNoGlyph = "0208383202";

std::string_view mark(char c) {
  constexpr std::array<std::pair<char, std::string_view>, 25> kMarks{{
      {'.', "0202"},
      {',', "1201"},
      {':', "0303 0606"},
      {'-', "0434"},
      {'_', "0141"},
      {'/', "0248"},
      {'(', "18060412"},
      {')', "08161402"},
      {'[', "18080212"},
      {']', "08181202"},
      {'=', "0535 0333"},
      {'+', "0444 2622"},
      {'*', "1723 0644 0446"},
      {'\'', "0807"},
      {'"', "0807 1817"},
      {'!', "0804 0202"},
      {'<', "460442"},
      {'>', "064402"},
      {'|', "0800"},
      {'~', "04153344"},
      {'@', "3424253443473818070312"},
      {'#', "1228 2238 0444 0646"},
      {'&', "42072817070312 2344"},
      {'%', "0248 0818170708 3343423233"},
      {'?', "07183847462524 2222"},
  }};
  const auto found = std::ranges::find(kMarks, c, &std::pair<char, std::string_view>::first);
  return found == kMarks.end() ? kNoGlyph : found->second;
}

std::string_view glyph(char c) {
  if (c >= '0' && c <= '9') return kDigits[static_cast<std::size_t>(c - '0')];
  if (c >= 'A' && c <= 'Z') return kCapitals[static_cast<std::size_t>(c - 'A')];
  if (c >= 'a' && c <= 'z') return kSmall[static_cast<std::size_t>(c - 'a')];
  return mark(c);
}

double glyph_width(std::string_view strokes) {
  double width = 0;
  for (std::size_t i = 0; i + 1 < strokes.size(); i += strokes[i] == ' ' ? 1 : 2) {
    if (strokes[i] != ' ') width = std::max(width, static_cast<double>(strokes[i] - '0'));
  }
  return width;
}

/// Calls use(strokes, x) for each character, x being its left side in units; returns the width in units.
template <class Use>
double set_type(std::string_view words, const Use& use) {
  double x = 0, end = 0;
  while (!words.empty()) {
    const std::size_t bytes = std::max<std::size_t>(1, utf8_length(words));
    if (words[0] == ' ') {
      x += kBlank;
    } else {
      const std::string_view strokes = bytes == 1 ? glyph(words[0]) : kNoGlyph;
      use(strokes, x);
      end = x + glyph_width(strokes);
      x = end + kGap;
    }
    words.remove_prefix(bytes);
  }
  return end;
}

void append_number(std::string& out, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(value >> shift & 0xff));
}

/// A chunk: the length of its data, its kind, its data, a checksum of both.
void append_chunk(std::string& out, std::string_view kind, std::string_view data) {
  append_number(out, static_cast<std::uint32_t>(data.size()));
  const std::size_t begin = out.size();
  out.append(kind).append(data);
  const auto* bytes = reinterpret_cast<const Bytef*>(out.data() + begin);
  append_number(out, static_cast<std::uint32_t>(::crc32(0, bytes, static_cast<uInt>(out.size() - begin))));
}

}  // namespace

Picture::Picture(std::size_t width, std::size_t height)
    : width_(width), height_(height), pixels_(3 * width * height, 255) {}

Colour Picture::at(std::size_t x, std::size_t y) const noexcept {
  const std::uint8_t* pixel = pixels_.data() + 3 * (y * width_ + x);
  return {pixel[0], pixel[1], pixel[2]};
}

void Picture::blend(std::size_t x, std::size_t y, double share, Colour colour) noexcept {
  std::uint8_t* pixel = pixels_.data() + 3 * (y * width_ + x);
  const std::array<std::uint8_t, 3> wanted{colour.red, colour.green, colour.blue};
  for (std::size_t i = 0; i < 3; ++i)
    pixel[i] = static_cast<std::uint8_t>(std::lround(pixel[i] + share * (wanted[i] - pixel[i])));
}

void Picture::line(Point from, Point to, double thickness, Colour colour) {
  const double reach = thickness / 2 + 1;
  const auto bound = [](double value, std::size_t size) {
    return static_cast<std::size_t>(std::clamp(value, 0.0, static_cast<double>(size)));
  };
  const std::size_t left = bound(std::min(from.x, to.x) - reach, width_);
  const std::size_t right = bound(std::max(from.x, to.x) + reach + 1, width_);
  const std::size_t top = bound(std::min(from.y, to.y) - reach, height_);
  const std::size_t bottom = bound(std::max(from.y, to.y) + reach + 1, height_);
  const double dx = to.x - from.x, dy = to.y - from.y, square = dx * dx + dy * dy;
  for (std::size_t y = top; y < bottom; ++y) {
    for (std::size_t x = left; x < right; ++x) {
      const double px = static_cast<double>(x) + 0.5 - from.x, py = static_cast<double>(y) + 0.5 - from.y;
      const double along = square > 0 ? std::clamp((px * dx + py * dy) / square, 0.0, 1.0) : 0.0;
      const double distance = std::hypot(px - along * dx, py - along * dy);
      const double share = std::clamp(thickness / 2 + 0.5 - distance, 0.0, 1.0);
      if (share > 0) blend(x, y, share, colour);
    }
  }
}

void Picture::polyline(std::span<const Point> points, double thickness, Colour colour) {
  if (points.size() == 1) line(points[0], points[0], 3 * thickness, colour);
  for (std::size_t i = 1; i < points.size(); ++i) line(points[i - 1], points[i], thickness, colour);
}

void Picture::text(std::string_view words, Point at, double height, Colour colour) {
  const double unit = height / kCapital, thickness = std::max(1.0, 0.75 * unit);
  set_type(words, [&](std::string_view strokes, double left) {
    std::vector<Point> points;
    for (std::size_t i = 0; i <= strokes.size(); ++i) {
      if (i == strokes.size() || strokes[i] == ' ') {
        if (points.size() > 1)
          for (std::size_t p = 1; p < points.size(); ++p) line(points[p - 1], points[p], thickness, colour);
        points.clear();
      } else if (i + 1 < strokes.size()) {
        points.push_back(
            {at.x + unit * (left + strokes[i] - '0'), at.y - unit * (strokes[i + 1] - '0' - kBaseline)});
        ++i;
      }
    }
  });
}

std::string Picture::png() const {
  std::string rows;
  rows.reserve((3 * width_ + 1) * height_);
  for (std::size_t y = 0; y < height_; ++y) {
    rows.push_back(0);  // its bytes are as they are
    rows.append(reinterpret_cast<const char*>(pixels_.data()) + 3 * width_ * y, 3 * width_);
  }
  uLongf size = ::compressBound(rows.size());
  std::string packed(size, '\0');
  if (::compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
                  rows.size(), Z_BEST_COMPRESSION) != Z_OK)
    throw Error(ErrorKind::host, "there is not enough memory to compress a picture");
  packed.resize(size);
  std::string header;
  append_number(header, static_cast<std::uint32_t>(width_));
  append_number(header, static_cast<std::uint32_t>(height_));
  header.append(
      {8, 2, 0, 0, 0});  // bits of a colour, three colours a pixel, deflate, filters by row, no interlace
  std::string file = "\x89PNG\r\n\x1a\n";
  append_chunk(file, "IHDR", header);
  append_chunk(file, "IDAT", packed);
  append_chunk(file, "IEND", {});
  return file;
}

double text_width(std::string_view words, double height) {
  return height / kCapital * set_type(words, [](std::string_view, double) {});
}

}  // namespace fleetrun::trace
