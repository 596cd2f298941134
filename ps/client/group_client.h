// How a trainer meets the others at the servers, and where it stands among them.
#pragma once

#include <cstdint>
#include <span>

namespace fleetrun::ps {

class GroupClient {
 public:
  virtual ~GroupClient() = default;

  /// Returns when every trainer that has not said goodbye has called it as often as this one.
  virtual void barrier() = 0;
  /// Adds `values` up over all trainers, in trainer order, in place; a barrier. The sizes must agree.
  virtual void all_reduce_sum(std::span<double> values) = 0;

  /// Whether this trainer came while others were training:
  /// it pulls what they have, and meets them from their next barrier on.
  virtual bool is_late() const noexcept = 0;
  /// Pushes, set_dense and shrink together are numbered from 1. Those before this one have been applied by
  /// every server; with ClientOptions::identity, some of it and after may have been by some servers: repeat
  /// them, from this one on, and what was applied already changes nothing.
  virtual std::uint64_t next_change() const noexcept { return 1; }
  /// sync mode, without an identity: this trainer was started again, goes on for the process before it, and
  /// its script has not come to where that one ended. Until then what was complete is so at once: barriers,
  /// sums (with the results of before), epochs, pushes in an epoch;
  /// set_dense, load, save and shrink do nothing.
  virtual bool is_catching_up() const { return false; }
  /// The trainer has heard of a newer world.
  virtual void set_generation(std::uint64_t generation) noexcept = 0;

  /// This trainer is done. When all have said so, the servers end by themselves.
  virtual void goodbye() = 0;
};

}  // namespace fleetrun::ps
