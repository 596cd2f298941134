// Which of one trainer's numbered changes a server has applied: all up to some number, and a few beyond it,
// since changes of several threads arrive in any order. Bounded: a number that is missing when one a whole
// window later has been applied was given up by its trainer, and counts as done.
//
// Pure bookkeeping; ps/durable/write_barrier.h holds the lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/error.h"

namespace fleetrun::ps {

class PushHistory {
 public:
  static constexpr std::uint64_t kWindow = 65536;
  static constexpr std::size_t kMaxRefusals = 64;

  /// Numbers start at 1.
  bool is_done(std::uint64_t number) const;
  /// Every number up to this one is done.
  std::uint64_t prefix() const noexcept { return prefix_; }
  std::uint64_t highest() const noexcept { return beyond_.empty() ? prefix_ : *beyond_.rbegin(); }
  /// Why a change was refused, for who asks again; of the last kMaxRefusals of them.
  std::optional<Error> refusal(std::uint64_t number) const;

  void note(std::uint64_t number);
  /// It was refused, and stays so: done without having changed anything.
  void refuse(std::uint64_t number, const Error& error);

  /// For checkpoints. The numbers beyond the prefix, ascending.
  std::vector<std::uint64_t> beyond() const { return {beyond_.begin(), beyond_.end()}; }
  static PushHistory restore(std::uint64_t prefix, const std::vector<std::uint64_t>& beyond);

 private:
  void advance();

  std::uint64_t prefix_ = 0;
  std::set<std::uint64_t> beyond_;
  std::map<std::uint64_t, Error> refusals_;
};

}  // namespace fleetrun::ps
