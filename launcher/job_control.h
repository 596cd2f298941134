// What parts beside the supervisor may ask of it: injected failures, the watch for hangs, the control socket.
//
// Such a part is a JobObserver that was made with a JobControl. It lives on the supervisor's loop, so nothing
// here has to be locked. Indices are those of the plan.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/job_event.h"
#include "launcher/log_files.h"
#include "launcher/plan.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

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
  /// These do not get on: `odd` are killed as the reason of it. `report` is for people.
  virtual void report_hang(const std::vector<std::size_t>& odd, const std::string& report) = 0;
  /// Tells all observers.
  virtual void tell(const JobEvent& event) = 0;
};

/// Makes one part; it may answer nullptr when it has nothing to do.
using MakeJobPart = std::function<std::unique_ptr<JobObserver>(JobControl&)>;

}  // namespace fleetrun::launcher
