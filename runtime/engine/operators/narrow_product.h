// Products with a matrix that is a few values wide, as the last layer of a model of clicks and its gradients
// are: the matrix library works on tiles that stay mostly empty then.
#pragma once

#include "runtime/engine/operators/matrix_product.h"

namespace fleetrun::engine {

/// Whether multiply_narrow is for this product: some forms of A·B with B,
/// or C and B, of at most four columns.
bool is_narrow(const MatrixProduct& product) noexcept;

/// As multiply(), for a product that is_narrow. Threads: any number of callers.
void multiply_narrow(const MatrixProduct& product, const float* a, const float* b, float* c) noexcept;

}  // namespace fleetrun::engine
