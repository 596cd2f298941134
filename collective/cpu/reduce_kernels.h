// Element-wise reduction of several buffers into one, in one pass,
// for all types and operations of collective/base/call.h.
//
// The loops are compiled for any x86-64, for AVX2 and for AVX-512, and chosen when they run; all three give
// the same bits. The order of summation is that of `inputs`,
// so that ranks that reduce the same inputs get the same bits.
#pragma once

#include <cstddef>
#include <span>

#include "collective/base/call.h"

namespace fleetrun::collective {

enum class Vectors { baseline, avx2, avx512 };
/// What this processor has.
Vectors best_vectors() noexcept;

struct Reduction {
  DataType type = DataType::float32;
  Operation operation = Operation::sum;
  int divisor = 1;  // of avg: the number of ranks

  bool operator==(const Reduction&) const = default;
};

/// output[i] = inputs[0][i] ∘ inputs[1][i] ∘ …, for `count` elements;
/// of avg, divided by the divisor at the end.
///
/// Shapes: every input and the output have `count` elements of the type, of any alignment; the output may be
/// one of the inputs, and does not overlap them otherwise.
/// float16 and bfloat16 are computed in float32 and rounded once, at the end.
void reduce(const Reduction& reduction, void* output, std::span<const void* const> inputs, std::size_t count,
            Vectors vectors) noexcept;
void reduce(const Reduction& reduction, void* output, std::span<const void* const> inputs,
            std::size_t count) noexcept;

}  // namespace fleetrun::collective
