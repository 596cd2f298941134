// Variables read: those of runtime/base/env_contract for collective jobs, torchrun's RANK, WORLD_SIZE,
// MASTER_ADDR and MASTER_PORT where Paddle's are not set, and FLEETRUN_COLLECTIVE,
// FLEETRUN_COLLECTIVE_TIMEOUT, FLEETRUN_MEET_TIMEOUT.
#include "collective/groups/world.h"

#include <algorithm>

#include "runtime/base/env_contract.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::collective {
namespace {

constexpr int kMaxRanks = 1'000'000;
constexpr int kMaxSeconds = 10'000'000;

int number_of(const Environ& environ, const std::string& name, int min, int max) {
  const std::string* text = environ.find(name);
  if (!text)
    throw Error(ErrorKind::config, name + " is not set",
                "start the program with fleetrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  const auto number = parse_integer(*text);
  if (!number || *number < min || *number > max)
    throw Error(ErrorKind::config, name + "=" + printable(*text) + " is not a whole number from " +
                                       std::to_string(min) + " to " + std::to_string(max));
  return static_cast<int>(*number);
}

std::chrono::milliseconds seconds_of(const Environ& environ, const std::string& name,
                                     std::chrono::milliseconds fallback) {
  if (!environ.has(name)) return fallback;
  return std::chrono::seconds(number_of(environ, name, 1, kMaxSeconds));
}

std::string attempt_of(const Environ& environ) {
  if (const std::string* run = environ.find("FLEETRUN_RUN"))
    return "epoch " + environ.value_or("FLEETRUN_EPOCH", "0") + " of run " + *run;
  const std::string job =
      environ.value_or("FLEETRUN_JOB_ID", environ.value_or("TORCHELASTIC_RUN_ID", "default"));
  return "attempt " +
         environ.value_or("FLEETRUN_ATTEMPT", environ.value_or("TORCHELASTIC_RESTART_COUNT", "0")) +
         " of job " + job;
}

void read_paddle(const Environ& environ, WorldOptions& options) {
  const Identity identity = identity_from(environ);
  options.rank = identity.rank;
  options.size = static_cast<int>(identity.trainers.size());
  const Endpoint& self = identity.trainers.at(static_cast<std::size_t>(identity.rank));
  options.address = self.host;
  options.store = to_string(identity.trainers.front());
  const std::vector<std::string> held = split(environ.value_or("FLEETRUN_LISTEN", ""), ',');
  options.shares_port = std::find(held.begin(), held.end(), options.store) != held.end();
}

void read_torch(const Environ& environ, WorldOptions& options) {
  options.size = number_of(environ, "WORLD_SIZE", 1, kMaxRanks);
  options.rank = number_of(environ, "RANK", 0, kMaxRanks);
  if (options.rank >= options.size)
    throw Error(ErrorKind::config, "RANK is " + std::to_string(options.rank) + " and WORLD_SIZE " +
                                       std::to_string(options.size));
  if (options.size == 1) return;
  const std::string* host = environ.find("MASTER_ADDR");
  if (!host) number_of(environ, "MASTER_ADDR", 0, 0);  // says that it is not set
  const int port = number_of(environ, "MASTER_PORT", 1, 65535);
  options.store = to_string(Endpoint{*host, static_cast<std::uint16_t>(port)});
}

}  // namespace

WorldOptions world_options_from(const Environ& environ) {
  WorldOptions options;
  if (environ.has("PADDLE_TRAINER_ENDPOINTS"))
    read_paddle(environ, options);
  else if (environ.has("WORLD_SIZE") || environ.has("RANK"))
    read_torch(environ, options);
  options.attempt = attempt_of(environ);
  if (options.size > 1)
    options.access = access_of(environ, "collective", "read and change what its ranks tell each other");
  options.transport = while_doing("reading FLEETRUN_COLLECTIVE", [&] {
    return parse_transport(environ.value_or("FLEETRUN_COLLECTIVE", "auto"));
  });
  options.meet_within = seconds_of(environ, "FLEETRUN_MEET_TIMEOUT", options.meet_within);
  options.call_within = seconds_of(environ, "FLEETRUN_COLLECTIVE_TIMEOUT", options.call_within);
  return options;
}

}  // namespace fleetrun::collective
