// What parts beside the supervisor may ask of it: injected failures, the watch for hangs, the control socket.
//
// Such a part is a JobPart that was made with a JobControl. It lives on the supervisor's loop, so nothing
// here has to be locked. Indices are those of the plan.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/logs/log_files.h"
#include "launcher/model/job_action.h"
#include "launcher/model/job_event.h"
#include "launcher/model/job_record.h"
#include "launcher/model/plan.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct StartExtras;

class JobControl {
 public:
  virtual ~JobControl() = default;

  virtual boost::asio::io_context& loop() = 0;
  /// The plan of the current attempt, and its logs in the same order.
  virtual const Plan& plan() const = 0;
  virtual const std::vector<LogFile>& logs() const = 0;

  /// Sends a signal to a process that lives; to another nothing.
  virtual void send_signal(std::size_t index, int number) = 0;
  /// As Ctrl-C does; `now` as Ctrl-C twice.
  virtual void request_stop(bool now) = 0;
  /// Tells all observers, and kills the culprits.
  virtual void report_hang(const event::HangFound& hang) = 0;
  /// A process has said something about its place.
  virtual void heard(const MemberSaid& said) = 0;
  /// So many processes of a role are to run.
  virtual void want(const CountWanted& wanted) = 0;
  /// Tells all observers.
  virtual void tell(const JobEvent& event) = 0;
};

class JobPart : public JobObserver {
 public:
  void on_event(const JobEvent&) override {}
  /// What is decided and done beside the events.
  virtual void on_record(const JobRecord&) {}
  /// How much later than usual the process is to be started in `attempt`.
  virtual std::chrono::milliseconds start_delay(std::size_t, int) { return {}; }
  /// What the process gets as the descriptor that `variable` names, borrowed until it was started;
  /// -1: not from here, or the machine gives none.
  virtual int open_descriptor(std::string_view /*variable*/, std::size_t) { return -1; }
  /// Adds what it has for a process that is started now; descriptors are borrowed until it was.
  virtual void prepare(std::size_t, StartExtras&) {}
  /// Hears what processes have said and nobody has read yet: it was said before the death that is told next.
  virtual void catch_up() {}
  /// The greatest step that any process has reported, in any attempt.
  virtual std::optional<std::int64_t> progress() { return std::nullopt; }
};

using JobParts = std::vector<std::unique_ptr<JobPart>>;

/// From the first of `parts` that has it.
inline int open_descriptor(const JobParts& parts, std::string_view variable, std::size_t index) {
  int fd = -1;
  for (auto part = parts.begin(); fd < 0 && part != parts.end(); ++part)
    fd = (*part)->open_descriptor(variable, index);
  return fd;
}

/// The greatest step that any of `parts` knows of.
inline std::optional<std::int64_t> progress_of(const JobParts& parts) {
  std::optional<std::int64_t> progress;
  for (const auto& part : parts) progress = std::max(progress, part->progress());
  return progress;
}

/// How much later than usual a process is to be started, all parts together.
inline std::chrono::milliseconds start_delay(const JobParts& parts, const StartProcess& start) {
  std::chrono::milliseconds delay{};
  for (const auto& part : parts) delay += part->start_delay(start.index, start.attempt);
  return delay;
}

/// Makes one part; it may answer nullptr when it has nothing to do.
using MakeJobPart = std::function<std::unique_ptr<JobPart>(JobControl&)>;

}  // namespace fleetrun::launcher
