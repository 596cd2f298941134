// When gradients are exchanged with other ranks, written into the program. A pass like those of passes.h,
// which prints the same way; it is applied by who runs the program, because it alone knows the buckets
// (runtime/trainer/gradient_exchange.h).
//
//   reduce_start (G1, G2, …) ->   behind the operator that finishes the last gradient of a bucket: from there
//                                 on the bucket travels, while the operators behind compute
//   reduce_wait  () -> G1, G2, …  before the first update operator that reads one of them:
//                                 they are means from there on
//   reduce_rest  () -> G1, G2, …  the same for gradients in no bucket, which do not travel before
//
// The first two have the attribute `bucket`, an index.
// The operators compute nothing: who runs the program acts before them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/engine/program.h"

namespace fleetrun::engine {

/// Names of gradients that travel together.
using ReduceBucket = std::vector<std::string>;

/// `program` with the exchange of its gradients (replicas.h: gradients_of) in it; a program without update
/// operators stays as it is. Throws: Error(config) for a bucket with something
/// that is not a dense gradient of the program.
Program schedule_reduction(const Program& program, std::span<const ReduceBucket> buckets);

}  // namespace fleetrun::engine
