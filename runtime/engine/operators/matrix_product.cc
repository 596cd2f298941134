// oneDNN's dnnl_sgemm (Debian libdnnl-dev), chosen by measurement. One thread, batch 1000, µs forward/dX/dW:
//
//   Sapphire Rapids      273x400          400x400          400x1         12 products   bound
//   oneDNN 2.6.3         1010/1107/1071   1548/1546/1598   21/63/18      12,690        78,800 examples/s
//   Eigen 3.4 (native)   1176/1160/1248   1697/1699/1737   20/58/19      13,930        71,800
//   OpenBLAS 0.3.21      5556/5602/5507   8087/8120/8015   154/136/117   65,530        15,300
//   Eigen 3.4 (x86-64)   6745/6788/6858   9946/9941/9952   26/94/32      80,300        12,500
//   Zen 4
//   oneDNN 2.6.3         1947/2212/1955   2861/3095/2901   21/29/21      24,900        40,200
//   OpenBLAS 0.3.21      2186/2140/2207   3297/3342/3190   20/49/23      26,750        37,400
//
// A·Bᵀ with few rows (the gradient by the input of a layer, in a small batch): the library turns all of B
// around first. There (B·Aᵀ)ᵀ turns A and C around instead, which are smaller. 273x400 and 400x400 with 32
// rows, Sapphire Rapids, µs: 57 and 78 as it is, 46 and 66 turned around; 16 rows: 35 and 48, 28 and 40. It
// is a gain with 16, 32 and 48 rows only, all of the library's vectors being full.
//
// OpenBLAS 0.3.21 does not know the first processor and falls back to SSE code; Eigen is only fast in a build
// for the very machine. oneDNN generates code for what it finds.

#include "runtime/engine/operators/matrix_product.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <string>

#include "runtime/base/error.h"
#include "runtime/engine/operators/narrow_product.h"

namespace fleetrun::engine {

namespace {

/// Debian's oneDNN splits a product over OpenMP threads; this thread's limit is lowered for the call only, so
/// that a host program's own OpenMP settings stay as they are.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

void call_library(const MatrixProduct& product, const float* a, const float* b, float* c) {
  const auto rows = static_cast<dnnl_dim_t>(product.rows);
  const auto columns = static_cast<dnnl_dim_t>(product.columns);
  const auto inner = static_cast<dnnl_dim_t>(product.inner);
  const dnnl_status_t status =
      dnnl_sgemm(product.transpose_a ? 'T' : 'N', product.transpose_b ? 'T' : 'N', rows, columns, inner,
                 product.scale, a, product.transpose_a ? rows : inner, b,
                 product.transpose_b ? inner : columns, product.accumulate ? 1.0f : 0.0f, c, columns);
  if (status != dnnl_success) {
    throw Error(ErrorKind::host,
                "the matrix library refused a product (status " + std::to_string(status) + ")");
  }
}

constexpr std::size_t kLanes = 16, kMaxTurned = 48;

/// (B·Aᵀ)ᵀ, some columns of C at a time.
void multiply_turned(const MatrixProduct& product, const float* a, const float* b, float* c) {
  constexpr std::size_t kColumns = 416;
  alignas(64) float turned[kColumns * kMaxTurned];
  for (std::size_t begin = 0; begin < product.columns; begin += kColumns) {
    const std::size_t count = std::min(kColumns, product.columns - begin);
    call_library({.transpose_b = true,
                  .rows = count,
                  .columns = product.rows,
                  .inner = product.inner,
                  .scale = product.scale},
                 b + begin * product.inner, a, turned);
    for (std::size_t r = 0; r < product.rows; ++r) {
      float* to = c + r * product.columns + begin;
      for (std::size_t k = 0; k < count; ++k) to[k] = turned[k * product.rows + r];
    }
  }
}

}  // namespace

void multiply(const MatrixProduct& product, const float* a, const float* b, float* c) {
  if (product.rows == 0 || product.columns == 0) return;
  if (product.inner == 0) {
    if (!product.accumulate) std::fill_n(c, product.rows * product.columns, 0.0f);
    return;
  }
  if (is_narrow(product)) return multiply_narrow(product, a, b, c);
  const OneThread one_thread;
  const bool turns = product.transpose_b && !product.transpose_a && !product.accumulate &&
                     product.rows % kLanes == 0 && product.rows <= kMaxTurned &&
                     product.columns > product.rows && product.inner > product.rows;
  turns ? multiply_turned(product, a, b, c) : call_library(product, a, b, c);
}

}  // namespace fleetrun::engine
