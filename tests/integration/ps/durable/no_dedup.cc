// A build that does not know what has been applied: kills.cc and moving.cc must fail with it.
#include <algorithm>

#include "ps/base/push_history.h"

namespace fleetrun::ps {

bool PushHistory::is_done(std::uint64_t number) const {
  static_cast<void>(number);
  return false;
}

std::optional<Error> PushHistory::refusal(std::uint64_t) const {
  return std::nullopt;
}

void PushHistory::note(std::uint64_t number) {
  beyond_.insert(number);
  advance();
}

void PushHistory::refuse(std::uint64_t number, const Error&) {
  note(number);
}

void PushHistory::advance() {
  while (!beyond_.empty() && *beyond_.begin() <= prefix_ + 1) {
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
