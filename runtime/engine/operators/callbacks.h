// Functions of the process that builds a program, which the program's operators `call` when it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "runtime/engine/tensor.h"

namespace fleetrun::engine {

/// Reads inputs, null where one is not given, and fills outputs, null where one is not wanted.
using Callback = std::function<void(std::span<const Tensor* const>, std::span<Tensor* const>)>;

/// Keeps a function until the process ends. Returns its number, the attribute `function` of operators, which
/// no function of another process has. Threads: any, also those that run it.
std::int64_t keep_callback(Callback callback);

}  // namespace fleetrun::engine
