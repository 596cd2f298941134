#include "ps/disk/disk_settings.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "ps/base/memory_amount.h"
#include "ps/disk/rocksdb_rows.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_limit.h"

namespace fleetrun::ps {
namespace {

std::uint64_t memory_of_host() {
  const std::uint64_t bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                              static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(bytes, cgroup_memory_limit().value_or(bytes));
}

std::uint64_t limit_of(const Environ& environ) {
  const std::optional<std::uint64_t> amount = memory_amount(environ, "FLEETRUN_PS_MEMORY");
  if (amount == 0)
    throw Error(ErrorKind::config, "FLEETRUN_PS_MEMORY=0 leaves no memory for rows",
                "write bytes, or a number with K, M, G or T: FLEETRUN_PS_MEMORY=16G");
  return amount.value_or(memory_of_host() / 4);
}

}  // namespace

TableMemory table_memory_of(const Environ& environ, const std::vector<TableConfig>& tables,
                            std::uint32_t rank) {
  if (std::none_of(tables.begin(), tables.end(), [](const auto& table) { return table.on_disk; })) return {};
  const std::uint64_t limit = limit_of(environ);
  RocksdbStoreOptions options;
  options.directory = environ.value_or("FLEETRUN_PS_DISK", "");
  if (options.directory.empty()) options.directory = "/var/tmp";
  options.owner = "job " + environ.value_or("FLEETRUN_JOB_ID", "?") + ", server " + std::to_string(rank);
  options.cache_bytes = std::clamp(limit / 16, 16 * kMiB, 1024 * kMiB);
  return {open_rocksdb_store(std::move(options)), std::make_shared<MemoryBudget>(limit)};
}

}  // namespace fleetrun::ps
