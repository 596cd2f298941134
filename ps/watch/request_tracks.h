// Draws a server's requests into a timeline: a track for each thread that serves some, a span for each
// request, from its arrival until this thread is done with it (one that waits
// for other trainers is answered by the thread of the last).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "runtime/base/timeline.h"

namespace fleetrun::ps {

/// Threads: any.
class RequestTracks {
 public:
  /// `timeline` may be null: nothing is drawn.
  explicit RequestTracks(std::shared_ptr<Timeline> timeline) : timeline_(std::move(timeline)) {}

  /// Null where nothing is drawn.
  Track* of_this_thread() {
    if (!timeline_) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto thread = std::this_thread::get_id();
    const auto found = tracks_.find(thread);
    if (found != tracks_.end()) return &found->second;
    return &tracks_.emplace(thread, Track(timeline_, "requests " + std::to_string(tracks_.size())))
                .first->second;
  }

 private:
  const std::shared_ptr<Timeline> timeline_;
  std::mutex mutex_;
  std::map<std::thread::id, Track> tracks_;
};

}  // namespace fleetrun::ps
