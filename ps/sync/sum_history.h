// The newest results of all_reduce_sum, for a trainer that is started again and asks for all of them from the
// first one on. Bounded: of older ones nothing is known.
//
// Pure bookkeeping; ps/sync/barrier_service.h holds the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "ps/base/bytes.h"
#include "ps/base/outcome.h"

namespace fleetrun::ps {

class SumHistory {
 public:
  /// Bytes that they may take.
  static constexpr std::size_t kMax = std::size_t{16} << 20;

  struct Part {
    std::uint64_t number = 0;  // as its trainer counts its sums
    std::uint64_t values = 0;  // that it brought
  };
  struct Sum {
    std::shared_ptr<Outcome> outcome;  // shared by the trainers of the round
    std::map<std::uint32_t, Part> parts;
  };

  void add(Sum sum);
  /// The sum that was a trainer's `number`th, or nothing.
  const Sum* find(std::uint32_t trainer, std::uint64_t number) const;
  /// Its numbers begin anew.
  void forget(std::uint32_t trainer);

  void write(Bytes& out) const;
  /// Throws: Error(data).
  void read(Reader& in);

 private:
  std::deque<Sum> sums_;
  std::size_t bytes_ = 0;
};

/// For checkpoints: u32 0 and the bytes, or u32 1 and the error: its kind, what and hint.
void write_outcome(Bytes& out, const Outcome& outcome);
Outcome read_outcome(Reader& in);

}  // namespace fleetrun::ps
