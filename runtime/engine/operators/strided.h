// Tensors seen with strides: a stride of 0 repeats a dimension,
// exchanged strides transpose, larger ones skip.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/engine/operators/axes.h"
#include "runtime/engine/operators/typed.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::engine {

/// Steps, in values, from one index of each dimension to the next of a tensor of `shape`.
inline std::vector<std::size_t> strides_of(const Shape& shape) {
  std::vector<std::size_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * static_cast<std::size_t>(shape[d]);
  }
  return strides;
}

/// body(first value in row-major order, its place in the view, values,
/// step in the view) for each run along the last dimension.
template <class Body>
void for_each_run(const Shape& shape, const std::vector<std::size_t>& strides, const Body& body) {
  const std::size_t dimensions = shape.size(), size = product(shape, 0, dimensions);
  if (size == 0) return;
  if (dimensions == 0) return body(std::size_t{0}, std::size_t{0}, std::size_t{1}, std::size_t{1});
  const auto run = static_cast<std::size_t>(shape.back());
  std::vector<std::size_t> at(dimensions, 0);
  std::size_t place = 0;
  for (std::size_t done = 0; done < size; done += run) {
    body(done, place, run, strides.back());
    for (std::size_t d = dimensions - 1; d-- > 0;) {
      place += strides[d];
      if (++at[d] < static_cast<std::size_t>(shape[d])) break;
      place -= strides[d] * static_cast<std::size_t>(shape[d]);
      at[d] = 0;
    }
  }
}

template <class T>
void gather_strided(const T* from, T* out, const Shape& shape, const std::vector<std::size_t>& strides) {
  for_each_run(shape, strides, [=](std::size_t at, std::size_t place, std::size_t run, std::size_t step) {
    for (std::size_t k = 0; k < run; ++k) out[at + k] = from[place + k * step];
  });
}

/// Copies to `out`, in order, the values of a view of `x`: any type; `out` has as many values as `shape`.
inline void gather_view(const Tensor& x, std::size_t offset, const Shape& shape,
                        const std::vector<std::size_t>& strides, Tensor& out) {
  const auto copy = [&]<class T>(T) {
    gather_strided(static_cast<const T*>(x.data()) + offset, static_cast<T*>(out.data()), shape, strides);
  };
  if (size_of(x.type()) == 1) return copy(std::uint8_t{});
  if (size_of(x.type()) == 4) return copy(std::uint32_t{});
  copy(std::uint64_t{});
}

/// The gradient dx of an X of which a view was taken: 0, and g added, in order, to the places of the view.
inline void add_to_view(const Tensor& g, Tensor& dx, std::size_t offset, const Shape& shape,
                        const std::vector<std::size_t>& strides) {
  with_gradient_type(g.type(), [&]<class T>(T) {
    const T* from = g.values<T>().data();
    const auto to = dx.values<T>();
    std::fill(to.begin(), to.end(), T{});
    T* view = to.data() + offset;
    for_each_run(shape, strides, [=](std::size_t at, std::size_t place, std::size_t run, std::size_t step) {
      for (std::size_t k = 0; k < run; ++k) view[place + k * step] += from[at + k];
    });
  });
}

}  // namespace fleetrun::engine
