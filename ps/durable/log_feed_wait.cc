// Answers wait for the standby. tests/integration/ps/durable/no_wait.cc is a build in which they do not.
#include <utility>

#include "ps/durable/log_feed.h"

namespace fleetrun::ps {

void LogFeed::when_safe(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t appended = next_.first + next_.records;
    if (state_ == State::guarded && reached_ < appended) {
      waiting_.emplace_back(appended, std::move(then));
      return;
    }
  }
  then();
}

}  // namespace fleetrun::ps
