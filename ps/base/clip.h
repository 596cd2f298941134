// How gradients are clipped by servers.
#pragma once

namespace fleetrun::ps {

/// What sync mode does to the mean of a step's gradients, before the rule: each value is cut to
/// [least, most], or they are scaled down so that the norm of the table's, or of all such tables' together,
/// is `most` or less. In other modes nothing is a mean over trainers, and who sends gradients cuts them.
struct Clip {
  enum class Kind { none, value, norm, global_norm };
  Kind kind = Kind::none;
  float least = 0.0f;
  float most = 0.0f;

  bool is_norm() const noexcept { return kind == Kind::norm || kind == Kind::global_norm; }
  bool operator==(const Clip&) const = default;
};

}  // namespace fleetrun::ps
