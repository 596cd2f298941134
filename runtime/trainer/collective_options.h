// How the ranks of a job train one program together.
#pragma once

#include <optional>
#include <string>

#include "runtime/trainer/local_steps.h"
#include "runtime/trainer/rank_mean.h"

namespace fleetrun::runtime {

struct CollectiveOptions {
  RankMeanOptions mean;
  /// Local SGD instead of averaged gradients.
  std::optional<LocalStepOptions> local = std::nullopt;
  /// The loss's variable, for adaptive local SGD.
  std::string loss = {};
};

}  // namespace fleetrun::runtime
