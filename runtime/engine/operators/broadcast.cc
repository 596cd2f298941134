#include "runtime/engine/operators/broadcast.h"

namespace fleetrun::engine {

namespace {

void align(const Shape& x, const Shape& y, std::int64_t axis, Shape& aligned_x, Shape& aligned_y) {
  aligned_x = x;
  aligned_y = y;
  if (axis >= 0 && x.size() >= y.size()) {
    while (aligned_y.size() + static_cast<std::size_t>(axis) < x.size()) aligned_y.push_back(1);
  }
  while (aligned_y.size() < aligned_x.size()) aligned_y.insert(aligned_y.begin(), 1);
  while (aligned_x.size() < aligned_y.size()) aligned_x.insert(aligned_x.begin(), 1);
}

}  // namespace

bool broadcast_shape(const Shape& x, const Shape& y, std::int64_t axis, Shape& result) {
  Shape a, b;
  align(x, y, axis, a, b);
  result.resize(a.size());
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (a[d] == b[d] || b[d] == 1) {
      result[d] = a[d];
    } else if (a[d] == 1) {
      result[d] = b[d];
    } else if (a[d] < 0 || b[d] < 0) {
      result[d] = a[d] < 0 ? b[d] : a[d];
    } else {
      return false;
    }
  }
  return true;
}

bool Broadcast::plan(const Shape& x, const Shape& y, std::int64_t axis) {
  align(x, y, axis, aligned_x_, aligned_y_);
  if (!broadcast_shape(x, y, axis, shape_)) return false;
  outer_.clear();
  runs_ = 1;
  std::size_t stride_x = 1, stride_y = 1;
  // From the last dimension outwards, joining dimensions that both operands walk in the same way.
  for (std::size_t d = shape_.size(); d-- > 0;) {
    const auto size = static_cast<std::size_t>(shape_[d]);
    if (size == 1) continue;
    const Dimension dimension{size, aligned_x_[d] == 1 ? 0 : stride_x, aligned_y_[d] == 1 ? 0 : stride_y};
    stride_x *= static_cast<std::size_t>(aligned_x_[d]);
    stride_y *= static_cast<std::size_t>(aligned_y_[d]);
    if (!outer_.empty()) {
      Dimension& inner = outer_.front();
      if (dimension.x == inner.x * inner.size && dimension.y == inner.y * inner.size) {
        inner.size *= size;
        continue;
      }
    }
    outer_.insert(outer_.begin(), dimension);
  }
  run_ = step_x_ = step_y_ = 1;
  if (!outer_.empty()) {
    run_ = outer_.back().size;
    step_x_ = outer_.back().x;
    step_y_ = outer_.back().y;
    outer_.pop_back();
  }
  for (const Dimension& dimension : outer_) runs_ *= dimension.size;
  if (run_ == 0) runs_ = 0;
  return true;
}

}  // namespace fleetrun::engine
