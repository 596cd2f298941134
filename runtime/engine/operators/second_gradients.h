// Gradients of gradient operators, for losses that are computed from a gradient, as a penalty on its norm is.
//
// Here dX is what the gradient operator makes, dOut its last input, and dd… the gradients of what it makes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/engine/operators.h"

namespace fleetrun::engine {

/// Of (X, more …, dOut) -> dX, the gradient of an operator that is linear in X: that operator of ddX.
void gradient_of_linear(GradientBuilder& builder);
/// Of (X, Out, dOut) -> dX, the same.
void gradient_of_reduction(GradientBuilder& builder);
/// Of d(X, Y, dOut) -> dX, dY and perhaps dBias, the gradient of an operator that is linear in X and in Y:
/// that operator of (ddX, Y, ddBias) and (X, ddY) for dOut, d(X, ddY, dOut) for X and d(ddX, Y, dOut) for Y.
void gradient_of_product(GradientBuilder& builder);
/// Of (X, Y, dOut) -> dX, dY: the operator of (ddX, ddY). For sums and differences.
void gradient_of_sum(GradientBuilder& builder);
/// Of d(X, Y, dOut) -> dOut / Y, -dOut * X / Y^2. With u = ddY / Y: dOut gets ddX / Y - X / Y * u, X the
/// first of d(X, Y, -dOut * u), Y the second of d(ddX, Y, dOut) and of d(X, Y, -2 * dOut * u).
void gradient_of_quotient(GradientBuilder& builder);
/// Of the greater or the smaller value: dOut gets ddX where X was taken, else ddY.
void gradient_of_choice(GradientBuilder& builder);
/// Of (Condition, dOut) -> dX, dY.
void gradient_of_where(GradientBuilder& builder);
/// Of (dOut, X1, X2, …) -> dX1, dX2, …: the operator of (ddX1, ddX2, …).
void gradient_of_join(GradientBuilder& builder);
/// Of (X, dOut1, dOut2, …) -> dX: the parts of ddX.
void gradient_of_split(GradientBuilder& builder);

/// A name that no variable of the program has, for what a later operator of the same gradient reads.
std::string unused_name(const GradientBuilder& builder, const std::string& base);
/// Appends an operator with one output of such a name, and returns it.
std::string append_new(GradientBuilder& builder, const std::string& type, std::vector<std::string> inputs,
                       const std::map<std::string, Attribute>& attributes = {});
/// The gradient of an output of the gradient operator; zeros like `like` where there is none.
std::string gradient_or_zeros(GradientBuilder& builder, std::size_t output, const std::string& like);
/// "matmul" of "matmul_grad".
std::string differentiated_type(const Operator& op);

}  // namespace fleetrun::engine
