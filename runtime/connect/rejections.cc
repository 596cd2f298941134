#include "runtime/connect/rejections.h"

#include "runtime/base/text.h"
#include "runtime/log/log.h"

namespace fleetrun {
namespace {

constexpr std::chrono::seconds kPause{1};
constexpr std::size_t kMaxPeers = 1024;

}  // namespace

void Rejections::note(const std::string& peer, const std::string& why) {
  std::uint64_t more = 0;
  {
    const std::lock_guard lock(mutex_);
    ++count_;
    const auto now = Clock::now();
    if (peers_.size() >= kMaxPeers && !peers_.contains(peer))
      std::erase_if(peers_, [now](const auto& entry) { return now - entry.second.said >= kPause; });
    if (peers_.size() >= kMaxPeers && !peers_.contains(peer)) return;
    const auto [entry, is_new] = peers_.try_emplace(peer);
    if (!is_new && now - entry->second.said < kPause) {
      ++entry->second.unsaid;
      return;
    }
    more = entry->second.unsaid;
    entry->second = {now, 0};
  }
  log::warning(server_ + " refused " + printable(peer) + ": " + printable(why, 400) +
               (more > 0 ? " (and " + std::to_string(more) + " times before that)" : ""));
}

std::uint64_t Rejections::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace fleetrun
