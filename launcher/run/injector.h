// Carries out what --inject asks for (launcher/model/injection):
// an observer of the job that sends signals when they are due.
//
// A signal goes to the one process that was started, not to its group, and never to another that got its pid
// later (pidfd). fleetrun-init gets it by its pid, fleetrun sends it to itself.
// Each one is told about before it is sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "launcher/model/injection.h"
#include "launcher/model/job_event.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

class Injector : public JobObserver {
 public:
  /// How much later than usual the process is to be started in `attempt`.
  virtual std::chrono::milliseconds start_delay(std::size_t index, int attempt) const = 0;

  /// The process's heartbeats have reached `step`.
  virtual void on_progress(std::size_t index, std::int64_t step) = 0;
};

/// The injections have been checked against `processes` (check_injections). `emit` gets event::Injected and
/// event::Warning, from the loop and never from within on_event().
std::unique_ptr<Injector> make_injector(boost::asio::io_context& loop, std::vector<Injection> injections,
                                        std::vector<InjectionTarget> processes, std::uint64_t seed,
                                        std::function<void(const JobEvent&)> emit);

}  // namespace fleetrun::launcher
