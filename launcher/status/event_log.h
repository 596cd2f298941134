// LOG_DIR/POD/events.jsonl: what happened in a job, one line of JSON per event
// (launcher/status/event_json has the table).
//
// The file is made when the first events are written, with mode 0600 and never through a symbolic link.
// Events are gathered and written by flush(), which its owner calls once per turn of its loop, so that a
// thousand processes that start together cost one write. A file that cannot be written costs one warning and
// the lines, never the job; when there is room again, a line says how many are missing. One thread.
#pragma once

#include <functional>
#include <string>

#include "launcher/model/job_event.h"
#include "launcher/model/plan.h"
#include "launcher/status/event_json.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

class EventLog final : public JobObserver {
 public:
  /// `warn` is called once at most, from flush(). `plan` outlives it.
  EventLog(const Plan& plan, std::function<void(const std::string&)> warn);
  ~EventLog() override { flush(); }

  void on_event(const JobEvent& event) override;

  /// Writes what has been gathered. Never throws.
  void flush() noexcept;

 private:
  void write_out();
  void fail(const std::string& why);

  const Plan& plan_;
  std::function<void(const std::string&)> warn_;
  UniqueFd file_;
  std::string unwritten_;
  std::size_t events_ = 0, lost_ = 0;
  bool broken_line_ = false;  // the file ends within a line
  bool warned_ = false;
};

}  // namespace fleetrun::launcher
