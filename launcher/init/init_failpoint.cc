#include "launcher/init/init_failpoint.h"

#include <time.h>

#include "runtime/base/text.h"

namespace fleetrun::launcher {

std::int64_t failpoint_ms(const Environ& environment, std::string_view name, std::int64_t usual) {
  const std::string* wanted = environment.find("FLEETRUN_FAILPOINT");
  if (wanted == nullptr) return usual;
  for (const std::string& entry : split(*wanted, ',')) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || std::string_view(entry).substr(0, equals) != name) continue;
    return parse_duration_ms(std::string_view(entry).substr(equals + 1)).value_or(usual);
  }
  return usual;
}

void pause_at_failpoint(std::int64_t milliseconds) noexcept {
  if (milliseconds == 0) return;
  const timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  ::nanosleep(&pause, nullptr);
}

}  // namespace fleetrun::launcher
