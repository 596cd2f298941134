#include "ps/table/memory_quota.h"

#include <unistd.h>

#include <fstream>

#include "ps/base/memory_amount.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_limit.h"

namespace fleetrun::ps {
std::uint64_t memory_limit_of(const Environ& environ) {
  if (const auto amount = memory_amount(environ, "FLEETRUN_PS_MEMORY_LIMIT")) return *amount;
  return cgroup_memory_limit().value_or(0) / 100 * 95;
}

std::uint64_t resident_bytes() {
  std::uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool MemoryQuota::is_used_up() {
  if (limit_ == 0) return false;
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count();
  std::int64_t looked = looked_;
  // One of several threads looks.
  if (now - looked >= kLook.count() && looked_.compare_exchange_strong(looked, now)) last_ = used_();
  return last_ > limit_;
}

void MemoryQuota::refuse() const {
  throw Error(ErrorKind::host,
              server_ + " has no memory for new rows: " + std::to_string(last_ >> 20) + " MiB of " +
                  std::to_string(limit_ >> 20) + " MiB",
              "use more servers, let tables go to disk (on_disk), or raise FLEETRUN_PS_MEMORY_LIMIT");
}

}  // namespace fleetrun::ps
