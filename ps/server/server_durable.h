// What a server that outlives its process has beside its state.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "ps/durable/checkpointer.h"
#include "ps/durable/write_log.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

struct Durable {
  std::string directory;  // the server's own
  UniqueFd lock;
  std::unique_ptr<DiskWatch> watch;  // of the log
  std::unique_ptr<WriteLog> log;
  std::mutex making;                // one checkpoint at a time; guards what follows
  std::uint64_t first_segment = 1;  // of the last checkpoint
  std::function<void(const Error&, bool is_fatal)> report;
  std::unique_ptr<Checkpointer> checkpointer;
};

/// Kinds of log records, and what they carry.
enum class Kept : std::uint32_t {
  change = 1,   // ChangeHead | body
  step = 2,     // pushes u64 | pushes x {ChangeHead, body}
  refusal = 3,  // ChangeHead | error kind u32 | what text | hint text
  event = 4,    // ps/sync/barrier_events.h
  expiry = 5,   // table u32 | keys u32 | u64[keys]
  cut = 6,      // trainer u32 | SaveMode u32: of a save that changes rows once it is durable …
  settled = 7,  // … as the last one is now
  // Of a cut that began before who reads this: table u32 | SaveMode u32 | rows u64 | keys | Statistics
  settled_rows = 8,
};

struct ChangeHead {
  std::uint32_t method = 0;
  std::uint32_t trainer = 0;
  std::uint32_t thread = 0;
  std::uint32_t unused = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;  // of the body
};
static_assert(sizeof(ChangeHead) == 40);

}  // namespace fleetrun::ps
