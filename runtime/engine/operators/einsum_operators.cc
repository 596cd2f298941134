// Einstein's sum of two operands, float32, as one batch of matrix products.
//
// A letter of both and of out counts batches, one of both alone is summed over; every other letter of an
// operand is one of out. The gradients are einsums too: dX = einsum(dOut, Y), dY = einsum(X, dOut).

#include <algorithm>
#include <map>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/matrix_product.h"
#include "runtime/engine/operators/strided.h"

namespace fleetrun::engine {

namespace {

using Sizes = std::map<char, std::int64_t>;

/// The letters of an einsum by what is done with them.
struct Letters {
  std::string x, y, out;
  std::string batch, summed, of_x, of_y;

  explicit Letters(const Operator& op)
      : x(attribute<std::string>(op, "x")),
        y(attribute<std::string>(op, "y")),
        out(attribute<std::string>(op, "out")) {
    const auto has = [](const std::string& letters, char c) { return letters.find(c) != std::string::npos; };
    for (const std::string* letters : {&x, &y, &out}) {
      std::string sorted = *letters;
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
        fail(op, "a letter is twice in '" + *letters + "'");
      }
    }
    for (const char c : x) (has(y, c) ? (has(out, c) ? batch : summed) : of_x) += c;
    for (const char c : y) {
      if (!has(x, c)) of_y += c;
    }
    for (const char c : of_x + of_y) {
      if (!has(out, c)) fail(op, std::string("'") + c + "' is in one operand alone", "sum over it before");
    }
    if (out.size() != batch.size() + of_x.size() + of_y.size()) {
      fail(op, "'" + out + "' has a letter that no operand has");
    }
  }

  /// What each letter stands for; -1 where unknown. Throws when the operands disagree.
  Sizes sizes(const Operator& op, const Shape& in_x, const Shape& in_y) const {
    Sizes sizes;
    for (const auto& [letters, shape] : {std::pair(&x, &in_x), std::pair(&y, &in_y)}) {
      if (letters->size() != shape->size()) {
        fail(op, "'" + *letters + "' stands for an operand of shape " + to_string(*shape));
      }
      for (std::size_t d = 0; d < shape->size(); ++d) {
        const auto [known, is_new] = sizes.emplace((*letters)[d], (*shape)[d]);
        if (is_new || (*shape)[d] < 0 || known->second == (*shape)[d]) continue;
        if (known->second >= 0) {
          fail(op, std::string("'") + (*letters)[d] + "' is both " + std::to_string(known->second) + " and " +
                       std::to_string((*shape)[d]) + ": " + to_string(in_x) + " and " + to_string(in_y));
        }
        known->second = (*shape)[d];
      }
    }
    return sizes;
  }
};

Shape shape_of(const std::string& letters, const Sizes& sizes) {
  Shape shape;
  for (const char c : letters) shape.push_back(sizes.at(c));
  return shape;
}

std::size_t count_of(const std::string& letters, const Sizes& sizes) {
  std::size_t count = 1;
  for (const char c : letters) count *= static_cast<std::size_t>(sizes.at(c));
  return count;
}

/// Strides that walk a tensor whose dimensions are `letters` in the order of `wanted`.
std::vector<std::size_t> strides_in(const std::string& wanted, const std::string& letters,
                                    const Sizes& sizes) {
  const auto strides = strides_of(shape_of(letters, sizes));
  std::vector<std::size_t> ordered;
  for (const char c : wanted) ordered.push_back(strides[letters.find(c)]);
  return ordered;
}

void infer_einsum(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  inference.expect_type(1, DataType::float32);
  const Letters letters(inference.op());
  const Sizes sizes = letters.sizes(inference.op(), inference.input(0).shape, inference.input(1).shape);
  inference.set_output(0, DataType::float32, shape_of(letters.out, sizes));
}

/// A tensor's values with its dimensions in another order.
const float* ordered(const Tensor& tensor, const std::string& letters, const std::string& wanted,
                     const Sizes& sizes, std::vector<float>& space) {
  const float* values = tensor.values<float>().data();
  if (letters == wanted) return values;
  space.resize(tensor.size());
  gather_strided(values, space.data(), shape_of(wanted, sizes), strides_in(wanted, letters, sizes));
  return space.data();
}

Kernel prepare_einsum(const Preparation& p) {
  return [op = &p.op, x = p.input(0), y = p.input(1), out = p.output(0), letters = Letters(p.op),
          space_x = std::vector<float>(), space_y = std::vector<float>(),
          space_out = std::vector<float>()]() mutable {
    const Sizes sizes = letters.sizes(*op, x->shape(), y->shape());
    const std::size_t rows = count_of(letters.of_x, sizes), columns = count_of(letters.of_y, sizes),
                      inner = count_of(letters.summed, sizes);
    const float* a = ordered(*x, letters.x, letters.batch + letters.of_x + letters.summed, sizes, space_x);
    const float* b = ordered(*y, letters.y, letters.batch + letters.summed + letters.of_y, sizes, space_y);
    const std::string made = letters.batch + letters.of_x + letters.of_y;
    out->resize(DataType::float32, shape_of(letters.out, sizes));
    float* const to = out->values<float>().data();
    if (made != letters.out) space_out.resize(out->size());
    float* const products = made == letters.out ? to : space_out.data();
    for (std::size_t i = 0, all = count_of(letters.batch, sizes); i < all; ++i) {
      multiply({.rows = rows, .columns = columns, .inner = inner}, a + i * rows * inner,
               b + i * inner * columns, products + i * rows * columns);
    }
    if (products != to) {
      gather_strided(products, to, out->shape(), strides_in(letters.out, made, sizes));
    }
  };
}

void einsum_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  const Letters letters(op);
  const std::string g = builder.output_gradient(0);
  const auto append = [&builder](const std::string& a, const std::string& b, const std::string& to,
                                 const std::string& in_a, const std::string& in_b, const std::string& in_to) {
    if (to.empty()) return;
    builder.append({.type = "einsum",
                    .inputs = {a, b},
                    .outputs = {to},
                    .attributes = {{"x", in_a}, {"y", in_b}, {"out", in_to}}});
  };
  append(g, op.inputs[1], builder.input_gradient(0), letters.out, letters.y, letters.x);
  append(op.inputs[0], g, builder.input_gradient(1), letters.x, letters.out, letters.y);
}

}  // namespace

std::span<const OperatorDefinition> einsum_operators() {
  static constexpr OperatorDefinition all[] = {
      {"einsum",
       infer_einsum,
       prepare_einsum,
       einsum_gradient,
       {"(X, Y) -> Out", "Einstein's sum: letters of both operands that are not in out are summed over",
        "x, y, out: a letter for each dimension, none twice in one of them"}},
  };
  return all;
}

}  // namespace fleetrun::engine
