#include "ps/durable/durable_settings.h"

#include <optional>
#include <string>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

constexpr std::int64_t kLongest = 7 * 24 * 3600;

std::chrono::milliseconds seconds_of(const Environ& environ, const std::string& name, std::int64_t standard) {
  const std::string text = environ.value_or(name, "");
  if (text.empty()) return std::chrono::seconds(standard);
  const std::optional<std::int64_t> seconds = parse_integer(text);
  if (seconds && *seconds >= 0 && *seconds <= kLongest) return std::chrono::seconds(*seconds);
  throw Error(ErrorKind::config, name + "=" + printable(text) + " is not a number of seconds",
              "write whole seconds, up to a week: " + name + "=" + std::to_string(standard));
}

}  // namespace

Durability durability_of(const Environ& environ) {
  Durability out;
  out.directory = environ.value_or("FLEETRUN_PS_CHECKPOINT", "");
  out.interval = seconds_of(environ, "FLEETRUN_PS_CHECKPOINT_INTERVAL", 60);
  out.run = environ.value_or("FLEETRUN_PS_RUN", "");
  out.served = environ.value_or("FLEETRUN_PS_SERVED", "");
  const std::string found = environ.value_or("FLEETRUN_PS_CHECKPOINT_FOUND", "refuse");
  if (found == "resume") {
    out.found = FoundCheckpoint::resume;
  } else if (found == "require") {
    out.found = FoundCheckpoint::require;
  } else if (found == "replace") {
    out.found = FoundCheckpoint::replace;
  } else if (found != "refuse" && !found.empty()) {
    throw Error(ErrorKind::config,
                "FLEETRUN_PS_CHECKPOINT_FOUND=" + printable(found) + " is nothing to do with a checkpoint",
                "set it to refuse, resume, require or replace");
  }
  const std::string sync = environ.value_or("FLEETRUN_PS_LOG_SYNC", "process");
  if (sync == "power") {
    out.sync = LogSync::power;
  } else if (sync != "process" && !sync.empty()) {
    throw Error(ErrorKind::config,
                "FLEETRUN_PS_LOG_SYNC=" + printable(sync) + " is not a way to keep the log",
                "set it to process, or to power to survive the end of the host too");
  }
  return out;
}

std::chrono::milliseconds recover_within_of(const Environ& environ) {
  const bool keeps = !environ.value_or("FLEETRUN_PS_CHECKPOINT", "").empty();
  return seconds_of(environ, "FLEETRUN_PS_RECOVER", keeps ? 120 : 0);
}

}  // namespace fleetrun::ps
