// The same work on many things, in as many threads as there are processors.
#pragma once

#include <cstddef>
#include <functional>

namespace fleetrun::ps {

/// Calls work(0) … work(count - 1), each once, from several threads; returns when all have ended. After one
/// has thrown no more are started, and the first error is thrown.
void work_in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace fleetrun::ps
