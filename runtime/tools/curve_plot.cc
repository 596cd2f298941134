#include "runtime/tools/curve_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace fleetrun::trace {
namespace {

constexpr std::size_t kPanelHeight = 380, kBottom = 40;
constexpr double kLeft = 100, kRight = 30, kTop = 50, kPanelGap = 20;
constexpr double kTitle = 13, kLabel = 10;  // heights of capitals
constexpr double kCurve = 2.0;
constexpr std::size_t kMaxNames = 8;  // of the legend

constexpr Colour kInk{40, 40, 40}, kGrid{224, 224, 224};
// Apart also for who sees few colours: they differ in brightness too.
constexpr std::array<Colour, 8> kColours{{{31, 96, 170},
                                          {214, 96, 20},
                                          {40, 140, 70},
                                          {150, 60, 150},
                                          {190, 160, 20},
                                          {60, 180, 200},
                                          {110, 70, 40},
                                          {230, 120, 160}}};

struct Range {
  double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// With room above and below; never empty.
  Range widened() const {
    const double room = high > low ? 0.05 * (high - low) : std::max(0.05 * std::abs(high), 1e-3);
    return {low - room, high + room};
  }
};

/// A rectangle of the picture, and what its sides stand for.
struct Frame {
  double left, right, top, bottom;
  Range x, y;

  Point place(double at_x, double at_y) const {
    return {left + (right - left) * (at_x - x.low) / (x.high - x.low),
            bottom - (bottom - top) * (at_y - y.low) / (y.high - y.low)};
  }
};

double step_of(const std::vector<double>& marks) {
  return marks.size() > 1 ? marks[1] - marks[0] : 1.0;
}

void draw_axes(Picture& picture, const Frame& frame) {
  const auto columns = ticks(frame.x.low, frame.x.high, 8), rows = ticks(frame.y.low, frame.y.high, 6);
  for (const double value : columns) {
    const double x = frame.place(value, frame.y.low).x;
    const std::string text = tick_text(value, step_of(columns));
    picture.line({x, frame.top}, {x, frame.bottom}, 1, kGrid);
    picture.line({x, frame.bottom}, {x, frame.bottom + 5}, 1, kInk);
    picture.text(text, {x - text_width(text, kLabel) / 2, frame.bottom + 10 + kLabel}, kLabel, kInk);
  }
  for (const double value : rows) {
    const double y = frame.place(frame.x.low, value).y;
    const std::string text = tick_text(value, step_of(rows));
    picture.line({frame.left, y}, {frame.right, y}, 1, kGrid);
    picture.line({frame.left - 5, y}, {frame.left, y}, 1, kInk);
    picture.text(text, {frame.left - 12 - text_width(text, kLabel), y + kLabel / 2}, kLabel, kInk);
  }
  picture.line({frame.left, frame.top}, {frame.left, frame.bottom}, 1.2, kInk);
  picture.line({frame.left, frame.bottom}, {frame.right, frame.bottom}, 1.2, kInk);
}

/// Names with a piece of their line, from the right side to the left.
void draw_legend(Picture& picture, const Frame& frame, const std::vector<Series>& all) {
  constexpr double kSample = 26, kBetween = 24;
  const double baseline = frame.top - 14;
  double right = frame.right;
  const std::size_t shown = std::min(all.size(), kMaxNames);
  if (all.size() > shown) {
    const std::string more = "and " + std::to_string(all.size() - shown) + " more";
    right -= text_width(more, kLabel);
    picture.text(more, {right, baseline}, kLabel, kInk);
    right -= kBetween;
  }
  for (std::size_t i = shown; i-- > 0;) {
    right -= text_width(all[i].name, kLabel);
    picture.text(all[i].name, {right, baseline}, kLabel, kInk);
    const double y = baseline - kLabel / 2;
    picture.line({right - 8 - kSample, y}, {right - 8, y}, kCurve + 1, kColours[i % kColours.size()]);
    right -= 8 + kSample + kBetween;
  }
}

void draw_panel(Picture& picture, const Frame& frame, const std::string& name,
                const std::vector<Series>& all) {
  draw_axes(picture, frame);
  picture.text(name, {frame.left, frame.top - 14}, kTitle, kInk);
  for (std::size_t i = all.size(); i-- > 0;) {
    std::vector<Point> points;
    for (const Sample& sample : all[i].samples) points.push_back(frame.place(sample.batches, sample.value));
    picture.polyline(points, kCurve, kColours[i % kColours.size()]);
  }
  draw_legend(picture, frame, all);
}

}  // namespace

std::vector<double> ticks(double low, double high, std::size_t wanted) {
  const double rough = (high - low) / static_cast<double>(wanted);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double step = power * (rough > 5 * power ? 10 : rough > 2 * power ? 5 : rough > power ? 2 : 1);
  std::vector<double> marks;
  const auto first = static_cast<std::int64_t>(std::ceil(low / step - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor(high / step + 1e-9));
  for (std::int64_t i = first; i <= last; ++i) marks.push_back(static_cast<double>(i) * step);
  return marks;
}

std::string tick_text(double value, double step) {
  char text[64];
  const bool is_plain = std::abs(value) < 1e7 && step >= 1e-6;
  const int digits = static_cast<int>(std::clamp(std::ceil(-std::log10(step) - 1e-9), 0.0, 9.0));
  std::snprintf(text, sizeof text, is_plain ? "%.*f" : "%.*e", is_plain ? digits : 2, value);
  return text;
}

Picture plot(const Curves& curves, std::size_t width) {
  Picture picture(width, kPanelHeight * curves.size() + kBottom);
  double top = 0;
  for (const auto& [name, all] : curves) {
    Range x, y;
    x.take(0);
    for (const Series& series : all) {
      for (const Sample& sample : series.samples) {
        x.take(sample.batches);
        y.take(sample.value);
      }
    }
    const Frame frame{kLeft,      static_cast<double>(width) - kRight,
                      top + kTop, top + static_cast<double>(kPanelHeight) - kPanelGap,
                      x,          y.widened()};
    draw_panel(picture, frame, name, all);
    top += static_cast<double>(kPanelHeight);
  }
  const std::string axis = "batches";
  const double middle = (kLeft + static_cast<double>(width) - kRight) / 2;
  picture.text(axis, {middle - text_width(axis, kLabel) / 2, static_cast<double>(picture.height()) - 14},
               kLabel, kInk);
  return picture;
}

}  // namespace fleetrun::trace
