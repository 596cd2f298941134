#include "runtime/tools/curve_plot.h"

#include <cmath>

#include <doctest/doctest.h>

using namespace fleetrun::trace;

namespace {

std::size_t pixels_of(const Picture& picture, Colour colour) {
  std::size_t count = 0;
  for (std::size_t y = 0; y < picture.height(); ++y) {
    for (std::size_t x = 0; x < picture.width(); ++x) {
      const Colour at = picture.at(x, y);
      count += at.red == colour.red && at.green == colour.green && at.blue == colour.blue ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("marks are round numbers within the axis") {
  CHECK(ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(ticks(0, 730, 8) == std::vector<double>{0, 100, 200, 300, 400, 500, 600, 700});
  const auto small = ticks(0.493, 0.541, 6);
  REQUIRE(small.size() == 5);
  CHECK(small[0] == doctest::Approx(0.50));
  CHECK(small[4] == doctest::Approx(0.54));
  CHECK(ticks(-1, 1, 4).size() == 5);
}

TEST_CASE("a mark has the digits that tell it from the next one") {
  CHECK(tick_text(200, 100) == "200");
  CHECK(tick_text(0.5, 0.01) == "0.50");
  CHECK(tick_text(0.505, 0.005) == "0.505");
  CHECK(tick_text(2.5, 0.5) == "2.5");
  CHECK(tick_text(3e9, 1e9) == "3.00e+09");
}

TEST_CASE("a panel for each name, a line for each trainer") {
  Curves curves;
  for (const char* name : {"auc", "loss"}) {
    for (int rank = 0; rank < 2; ++rank) {
      Series series{"trainer " + std::to_string(rank), {}};
      for (int i = 1; i < 50; ++i) series.samples.push_back({10.0 * i, std::exp(-0.05 * i) + 0.1 * rank});
      curves[name].push_back(series);
    }
  }
  const Picture two = plot(curves, 800);
  curves.erase("auc");
  const Picture one = plot(curves, 800);
  CHECK(two.width() == 800);
  CHECK(two.height() > one.height() + 300);
  for (const Colour colour : {Colour{31, 96, 170}, Colour{214, 96, 20}}) {
    CHECK(pixels_of(one, colour) > 400);
    CHECK(pixels_of(two, colour) > 2 * pixels_of(one, colour) - 50);
  }
  CHECK(pixels_of(one, {40, 140, 70}) == 0);
}

TEST_CASE("one value, equal values and many trainers are drawn too") {
  Curves curves;
  for (int rank = 0; rank < 20; ++rank)
    curves["loss"].push_back({"trainer " + std::to_string(rank), {{100, 0.0}}});
  CHECK(pixels_of(plot(curves, 600), {31, 96, 170}) > 10);
}
