// Which of several processes failed first, and which only followed. Pure.
//
// When a process of a job fails, the others lose their peer and fail too, some milliseconds later, with a
// connection that was reset or a wait that was in vain. The order of death alone nearly always tells the
// first. It does not when the first one to fail is slow to die (it unwinds, writes its traceback, closes its
// device) and a peer is quicker. Then the words decide:
//
//   the first that died of itself             answer
//   does not say that a peer was gone         that one
//   says so, or died of a closed pipe         the earliest within two seconds that has a reason of its own:
//                                             what it wrote, a signal that nobody of us sent, a failed start;
//                                             else the earliest that says nothing;
//                                             else the first all the same
//
// "Within" is on both sides: what was written may be older than any death. Processes that ended as fleetrun
// told them to are suspects only when the end of their log shows a failure of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "launcher/failure/failure_text.h"
#include "launcher/job/job_history.h"

namespace fleetrun::launcher {

constexpr std::int64_t kCascadeWindow = 2'000'000'000;  // nanoseconds

/// What the end of a process's log says; called only for those where it matters.
using TextOf = std::function<std::optional<FailureText>(std::size_t index)>;

/// The index of the process that failed first; nullopt when none failed of itself.
std::optional<std::size_t> root_cause(std::span<const Ending> endings, const TextOf& text_of);

}  // namespace fleetrun::launcher
