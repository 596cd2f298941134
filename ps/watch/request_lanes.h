// Draws a server's requests into a timeline: a lane for each thread that serves some, a bar for each request,
// from its arrival until this thread is done with it (one that waits
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
class RequestLanes {
 public:
  /// `timeline` may be null: nothing is drawn.
  explicit RequestLanes(std::shared_ptr<Timeline> timeline) : timeline_(std::move(timeline)) {}

  /// Null where nothing is drawn.
  Lane* of_this_thread() {
    if (!timeline_) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto thread = std::this_thread::get_id();
    const auto found = lanes_.find(thread);
    if (found != lanes_.end()) return &found->second;
    return &lanes_.emplace(thread, Lane(timeline_, "requests " + std::to_string(lanes_.size())))
                .first->second;
  }

 private:
  const std::shared_ptr<Timeline> timeline_;
  std::mutex mutex_;
  std::map<std::thread::id, Lane> lanes_;
};

}  // namespace fleetrun::ps
