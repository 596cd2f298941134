#include "ps/disk/disk_settings.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "ps/disk/rocksdb_rows.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_limit.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

std::uint64_t memory_of_host() {
  const std::uint64_t bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                              static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(bytes, cgroup_memory_limit().value_or(bytes));
}

std::uint64_t limit_of(const Environ& environ) {
  const std::string* text = environ.find("FLEETRUN_PS_MEMORY");
  if (text == nullptr || text->empty()) return memory_of_host() / 4;
  if (const std::optional<std::uint64_t> bytes = parse_bytes(*text)) return *bytes;
  throw Error(ErrorKind::config, "FLEETRUN_PS_MEMORY=" + printable(*text) + " is not an amount of memory",
              "write bytes, or a number with K, M, G or T: FLEETRUN_PS_MEMORY=16G");
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
  constexpr std::string_view kUnits = "KMGT";
  double factor = 1.0;
  if (!text.empty()) {
    if (const std::size_t unit = kUnits.find(text.back()); unit != std::string_view::npos) {
      factor = std::ldexp(1.0, static_cast<int>(10 * (unit + 1)));
      text.remove_suffix(1);
    }
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::optional<std::int64_t> whole = parse_integer(text.substr(0, point));
  if (!whole || text.starts_with('-')) return std::nullopt;
  double number = static_cast<double>(*whole);
  if (point < text.size()) {
    const std::string_view digits = text.substr(point + 1);
    const std::optional<std::int64_t> part = parse_integer(digits);
    if (!part || digits.starts_with('-')) return std::nullopt;
    number += static_cast<double>(*part) / std::pow(10.0, static_cast<double>(digits.size()));
  }
  const double bytes = number * factor;
  if (bytes < 1.0 || bytes >= std::ldexp(1.0, 63)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

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
