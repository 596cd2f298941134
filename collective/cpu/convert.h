// Loops of collective/cpu/flatten over plain memory, compiled for any x86-64,
// for AVX2 and for AVX-512 and chosen when they run.
#pragma once

#include <cstddef>

#include "collective/base/call.h"
#include "collective/cpu/reduce_kernels.h"

namespace fleetrun::collective {

/// output[i] = input[i] * scale, of floating-point types. true: all of the output is finite.
bool convert(DataType from, const void* input, DataType to, void* output, std::size_t count, double scale,
             Vectors vectors) noexcept;

}  // namespace fleetrun::collective
