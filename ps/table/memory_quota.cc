#include "ps/table/memory_quota.h"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_limit.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

std::optional<std::uint64_t> amount_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::size_t known = std::string_view("KMGT").find(unit);
  if (error != std::errc() || unit.size() > 1 || known == std::string_view::npos) return std::nullopt;
  const std::size_t power = unit.empty() ? 0 : known + 1;
  if (number > (UINT64_MAX >> (10 * power))) return std::nullopt;
  return number << (10 * power);
}

}  // namespace

std::uint64_t memory_limit_of(const Environ& environ) {
  if (const std::string* text = environ.find("FLEETRUN_PS_MEMORY_LIMIT"); text && !text->empty()) {
    if (const auto amount = amount_of(*text)) return *amount;
    throw Error(ErrorKind::config,
                "FLEETRUN_PS_MEMORY_LIMIT=" + printable(*text) + " is not an amount of memory",
                "write bytes, or a number with K, M, G or T: FLEETRUN_PS_MEMORY_LIMIT=16G");
  }
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
