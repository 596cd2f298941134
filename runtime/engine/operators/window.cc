#include "runtime/engine/operators/window.h"

#include <algorithm>

namespace fleetrun::engine {

namespace {

/// Of every number of a window: what is computed of them stays within 64 bits.
constexpr std::int64_t kMax = std::int64_t{1} << 30;

std::vector<std::int64_t> per_axis(const Operator& op, const char* name, std::size_t entries,
                                   std::int64_t fallback, std::int64_t min) {
  auto values = attribute(op, name, std::vector<std::int64_t>(entries, fallback));
  if (values.size() != entries) {
    fail(op, "attribute '" + std::string(name) + "' has " + std::to_string(values.size()) +
                 " numbers, the kernel needs " + std::to_string(entries));
  }
  for (const std::int64_t value : values) {
    if (value < min || value > kMax) {
      fail(op, "attribute '" + std::string(name) + "' is " + to_string(values) + "; its numbers are " +
                   std::to_string(min) + " to " + std::to_string(kMax));
    }
  }
  return values;
}

}  // namespace

std::int64_t WindowAxis::places(std::int64_t size, bool ceil) const noexcept {
  if (size < 0) return -1;
  const std::int64_t room = size + before + after - (dilation * (kernel - 1) + 1);
  // As in Paddle, a window that reaches beyond the axis by less than its stride has a place.
  return std::max<std::int64_t>((room + (ceil ? stride - 1 : 0)) / stride + 1, 0);
}

Shape Window::places(const Shape& x, std::int64_t channels, bool ceil) const {
  Shape shape = x;
  shape[1] = channels;
  shape.back() = wide.places(x.back(), ceil);
  if (x.size() == 4) shape[2] = high.places(x[2], ceil);
  return shape;
}

Window window_of(const Operator& op, std::span<const std::int64_t> kernel) {
  const std::size_t axes = kernel.size();
  if (std::any_of(kernel.begin(), kernel.end(), [](std::int64_t size) { return size > kMax; }))
    fail(op, "a window of " + to_string(Shape(kernel.begin(), kernel.end())) + " is too large");
  const auto strides = per_axis(op, "strides", axes, 1, 1);
  const auto paddings = per_axis(op, "paddings", 2 * axes, 0, 0);
  const auto dilations = per_axis(op, "dilations", axes, 1, 1);
  const auto axis = [&](std::size_t i) {
    return WindowAxis{kernel[i], strides[i], paddings[2 * i], paddings[2 * i + 1], dilations[i]};
  };
  return axes == 1 ? Window{{}, axis(0)} : Window{axis(0), axis(1)};
}

ImageSize::ImageSize(const Shape& shape)
    : examples(static_cast<std::size_t>(shape[0])),
      channels(static_cast<std::size_t>(shape[1])),
      high(shape.size() == 4 ? static_cast<std::size_t>(shape[2]) : 1),
      wide(static_cast<std::size_t>(shape.back())) {}

}  // namespace fleetrun::engine
