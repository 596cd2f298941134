// Gloo's algorithms over connections of ours: a context for <gloo/allreduce.h> and its like whose buffers are
// sent and received by RankLinks. Gloo's own TCP lets whoever connects first be a rank, ends the process
// where somebody sends it bytes of another shape, and cannot be interrupted.
#pragma once

#include <functional>
#include <memory>

#include "collective/cpu/rank_links.h"

namespace gloo {
class Context;
}

namespace fleetrun::collective {

/// Returns when the condition holds, moving bytes meanwhile; throws when it will not.
using WaitUntil = std::function<void(const std::function<bool()>&)>;

/// Borrows the links. Errors that `wait` throws come out of Gloo's functions.
std::shared_ptr<gloo::Context> make_gloo_context(RankLinks& links, WaitUntil wait);

}  // namespace fleetrun::collective
