#include "ps/base/push_history.h"

#include <algorithm>

#include "ps/base/outcome.h"

namespace fleetrun::ps {

bool PushHistory::is_done(std::uint64_t number) const {
  return number <= prefix_ || beyond_.contains(number);
}

std::optional<Error> PushHistory::refusal(std::uint64_t number) const {
  const auto found = refusals_.find(number);
  if (found == refusals_.end()) return std::nullopt;
  return separate_copy(found->second);
}

void PushHistory::note(std::uint64_t number) {
  if (is_done(number)) return;
  beyond_.insert(number);
  if (number - prefix_ > kWindow) prefix_ = number - kWindow;
  advance();
}

void PushHistory::refuse(std::uint64_t number, const Error& error) {
  if (is_done(number)) return;
  refusals_.emplace(number, separate_copy(error));
  if (refusals_.size() > kMaxRefusals) refusals_.erase(refusals_.begin());
  note(number);
}

void PushHistory::advance() {
  while (!beyond_.empty() && (*beyond_.begin() <= prefix_ || *beyond_.begin() - prefix_ == 1)) {
    prefix_ = std::max(prefix_, *beyond_.begin());
    beyond_.erase(beyond_.begin());
  }
}

PushHistory PushHistory::restore(std::uint64_t prefix, const std::vector<std::uint64_t>& beyond) {
  PushHistory out;
  out.prefix_ = prefix;
  for (const std::uint64_t number : beyond) out.note(number);
  return out;
}

}  // namespace fleetrun::ps
