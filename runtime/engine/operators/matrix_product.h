// C = A·B for row-major float32 matrices: the only way to the matrix library.
//
// Threads: any number of callers; each product runs on its caller's thread alone, whatever OMP_NUM_THREADS
// says, because the number of trainer threads is what the user chose.
#pragma once

#include <cstddef>

namespace fleetrun::engine {

struct MatrixProduct {
  bool transpose_a = false;
  bool transpose_b = false;
  /// C is rows x columns; `inner` is summed over.
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t inner = 0;
  /// C += scale·A·B instead of C = scale·A·B.
  bool accumulate = false;
  float scale = 1.0f;
};

/// A is [rows, inner] ([inner, rows] when transposed), B is [inner, columns] ([columns, inner]), both
/// without gaps between rows.
void multiply(const MatrixProduct& product, const float* a, const float* b, float* c);

}  // namespace fleetrun::engine
