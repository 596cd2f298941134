#include "ps/base/fast_forward.h"

#include <algorithm>
#include <string>

#include "runtime/base/error.h"

namespace fleetrun::ps {

bool FastForward::is_under_way() const {
  const std::lock_guard lock(mutex_);
  if (barriers_ < done_.barriers || sums_ < done_.sums || epochs_ < done_.epochs) return true;
  if (epochs_ != done_.epochs) return false;
  for (std::uint32_t thread = 0; thread < steps_.size(); ++thread) {
    const std::uint64_t before = steps_everywhere(thread);
    if (before != kAll && steps_[thread] < before) return true;
  }
  return false;
}

std::uint64_t FastForward::steps_ahead(std::uint32_t thread) const {
  const std::lock_guard lock(mutex_);
  return ahead_of(thread);
}

bool FastForward::is_ahead_somewhere() const {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t thread = 0; thread < steps_.size(); ++thread) {
    if (ahead_of(thread) > 0) return true;
  }
  return false;
}

bool FastForward::barrier(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  barriers_ = number;
  return number <= done_.barriers;
}

bool FastForward::sum(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  sums_ = number;
  return number <= done_.sums;
}

// The epoch in its turn, or the last one with these data: the script left out those before it.
void FastForward::find_counted(std::uint64_t data, Begun& begun) {
  const std::vector<wire::EpochMark>& marks = done_.marks;
  const auto in_turn = begun.number - 1;
  if (in_turn < marks.size() && (data == 0 || marks[in_turn].data == 0 || marks[in_turn].data == data))
    return;
  std::uint64_t at = marks.size();
  while (at > in_turn && marks[at - 1].data != data) --at;
  if (at <= in_turn) {
    // None that was begun before: nothing is left to catch up with.
    begun.leaves_cut = done_.is_cut && in_turn < marks.size();
    begun.number = std::max<std::uint64_t>(begun.number, marks.size() + 1);
    barriers_ = std::max(barriers_, done_.barriers);
    sums_ = std::max(sums_, done_.sums);
  } else {
    begun.number = at;
    barriers_ = std::max(barriers_, marks[at - 1].barriers);
    sums_ = std::max(sums_, marks[at - 1].sums);
  }
}

FastForward::Begun FastForward::begin_epoch(std::uint64_t number, std::uint32_t threads, std::uint64_t data) {
  const std::lock_guard lock(mutex_);
  Begun begun{number};
  if (!done_.marks.empty()) find_counted(data, begun);
  number = begun.number;
  for (const Done::Epoch& server : done_.servers) {
    if (server.number != number || server.steps.empty() || server.steps.size() == threads) continue;
    throw Error(ErrorKind::config,
                "pass " + std::to_string(number) + " was begun with " + std::to_string(server.steps.size()) +
                    " threads, and after a restart of its trainer with " + std::to_string(threads),
                "the files and the number of threads must be the same as before");
  }
  epochs_ = number;
  steps_.assign(threads, 0);
  begun.is_known = number <= done_.epochs;
  begun.barriers = barriers_;
  begun.sums = sums_;
  return begun;
}

std::uint64_t FastForward::skip_steps(std::uint32_t thread) {
  const std::lock_guard lock(mutex_);
  if (thread >= steps_.size()) return 0;
  return steps_[thread] = steps_everywhere(thread);
}

std::uint64_t FastForward::next_step(std::uint32_t thread) {
  const std::lock_guard lock(mutex_);
  if (thread >= steps_.size()) return kAll;
  if (steps_[thread] != kAll) ++steps_[thread];
  return steps_[thread];
}

bool FastForward::has(std::uint32_t server, std::uint32_t thread, std::uint64_t step) const {
  const std::lock_guard lock(mutex_);
  return server < done_.servers.size() && step <= steps_of(done_.servers[server], thread);
}

bool FastForward::is_everywhere(std::uint32_t thread, std::uint64_t step) const {
  const std::lock_guard lock(mutex_);
  return step <= steps_everywhere(thread);
}

std::uint64_t FastForward::steps_of(const Done::Epoch& server, std::uint32_t thread) const {
  if (server.number > epochs_) return kAll;
  if (server.number < epochs_ || thread >= server.steps.size()) return 0;
  return server.steps[thread];
}

std::uint64_t FastForward::ahead_of(std::uint32_t thread) const {
  std::uint64_t most = 0;
  for (const Done::Epoch& server : done_.servers) {
    const std::uint64_t there = steps_of(server, thread);
    if (there != kAll && thread < steps_.size() && steps_[thread] < there)
      most = std::max(most, there - steps_[thread]);
  }
  return most;
}

std::uint64_t FastForward::steps_everywhere(std::uint32_t thread) const {
  std::uint64_t min = done_.servers.empty() ? 0 : kAll;
  for (const Done::Epoch& server : done_.servers) min = std::min(min, steps_of(server, thread));
  return min;
}

}  // namespace fleetrun::ps
