// A small picture: smooth lines, text of strokes, and PNG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::trace {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
};

/// In pixels, from the left and from the top.
struct Point {
  double x = 0, y = 0;
};

class Picture {
 public:
  /// White.
  Picture(std::size_t width, std::size_t height);

  std::size_t width() const noexcept { return width_; }
  std::size_t height() const noexcept { return height_; }
  Colour at(std::size_t x, std::size_t y) const noexcept;

  /// A straight line with round ends; what is outside of the picture is left out.
  /// Source: coverage by distance.
  void line(Point from, Point to, double thickness, Colour colour);
  void polyline(std::span<const Point> points, double thickness, Colour colour);
  /// `height`: of a capital letter. `at`: where the text's baseline begins.
  void text(std::string_view words, Point at, double height, Colour colour);

  /// The file. Throws: Error(host) when there is no memory to compress it.
  std::string png() const;

 private:
  void blend(std::size_t x, std::size_t y, double share, Colour colour) noexcept;

  std::size_t width_, height_;
  std::vector<std::uint8_t> pixels_;  // rows of red, green, blue
};

/// How wide a text is, in pixels.
double text_width(std::string_view words, double height);

}  // namespace fleetrun::trace
