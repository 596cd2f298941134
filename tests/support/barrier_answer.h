// What a barrier service answers a trainer, and what it has to remember, for the tests of barrier services.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "ps/sync/barrier_events.h"
#include "ps/sync/barrier_service.h"

namespace fleetrun::tests {

/// The text of an error, "ok", or "nothing" as long as there is no answer; and the number that came with it.
struct Answer {
  std::string text = "nothing";
  double value = 0.0;

  ps::Respond respond() {
    return [this](ps::Outcome outcome) {
      const Error* error = std::get_if<Error>(&outcome);
      text = error != nullptr ? error->what() : "ok";
      if (error != nullptr) return;
      ps::Reader reader(std::get<ps::Message>(outcome).bytes());
      if (reader.remaining() == sizeof value) value = reader.value<double>();
    };
  }
};

/// Keeps a barrier service's events as a log does.
inline std::function<void(const ps::BarrierEvent&)> kept_in(std::vector<ps::Bytes>& log) {
  return [&log](const ps::BarrierEvent& event) {
    ps::Bytes bytes;
    write(bytes, event);
    log.push_back(bytes);
  };
}

}  // namespace fleetrun::tests
