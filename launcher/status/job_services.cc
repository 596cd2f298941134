#include "launcher/status/job_services.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <utility>

#include "launcher/host/run_directory.h"
#include "launcher/job/event_text.h"
#include "launcher/status/control_actions.h"
#include "launcher/status/control_request.h"
#include "launcher/status/control_server.h"
#include "launcher/status/event_json.h"
#include "launcher/status/event_log.h"
#include "launcher/status/job_status.h"
#include "launcher/status/job_status_json.h"
#include "launcher/status/metrics.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;

class Services final : public JobPart {
 public:
  Services(JobControl& control, ServiceSettings settings)
      : control_(control),
        settings_(std::move(settings)),
        board_(control.plan(), monotonic_ns()),
        text_(control.plan()),
        events_(control.plan(), [this](const std::string& warning) { warn(warning); }),
        actions_(control_actions(control, board_, settings_.environment, settings_.servers)) {
    if (settings_.metrics)
      metrics_ = start_metrics(control.loop(), *settings_.metrics,
                               [this] { return to_prometheus(status_to_scrape()); });
  }

  ~Services() override { over_ = true; }
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  void on_event(const JobEvent& event) override {
    board_.on_event(event);
    const Sentence sentence = text_.on(event);
    events_.on_event(event);
    if (server_ && server_->has_attached())
      server_->publish(attached_line(to_json_line(event, control_.plan(), event_time_now()), sentence));
    if (std::holds_alternative<event::ProcessStarted>(event) ||
        std::holds_alternative<event::ProcessNotStarted>(event))
      started_ = true;
    if (std::holds_alternative<event::JobEnded>(event)) return end();
    later();
  }

 private:
  /// Once per turn of the loop, however many events there were.
  void later() {
    if (std::exchange(posted_, true)) return;
    asio::post(control_.loop(), [weak = std::weak_ptr<Services*>(self_)] {
      if (const auto self = weak.lock()) (*self)->on_turn();
    });
  }

  void on_turn() {
    posted_ = false;
    if (!started_) return;
    if (!std::exchange(published_, true)) publish();
    events_.flush();
  }

  void publish() {
    if (settings_.run_directories.empty()) return;
    try {
      const Plan& plan = control_.plan();
      JobEntry entry;
      entry.job_id = plan.job_id;
      entry.pod = plan.pod_name;
      entry.mode = to_string(plan.mode);
      entry.began_at = event_time_now().wall_ns;
      entry.processes = static_cast<int>(plan.processes.size());
      entry.log_dir = plan.log_dir;
      entry.launch_log = settings_.launch_log;
      entry.metrics = metrics_ ? metrics_->address() : "";
      entry.detached = settings_.detached;
      entry_ = RunEntry(settings_.run_directories, std::move(entry), [&](const RunEntry& made) {
        server_ =
            start_control(control_.loop(), made, plan, *actions_, [this] { return to_json(full_status()); });
      });
    } catch (const Error& error) {
      server_.reset();
      warn(std::string("fleetrun status, stop and attach will not find this job: ") + error.what());
    }
  }

  void warn(const std::string& text) {
    if (!over_) control_.tell(event::Warning{text});
  }

  JobStatus full_status() const {
    JobStatus status = board_.status(monotonic_ns());
    add_usage(status);
    if (!settings_.metrics_directory.empty()) add_metrics(status, settings_.metrics_directory);
    add_last_lines(status);
    return status;
  }

  JobStatus status_to_scrape() const {
    JobStatus status = full_status();
    if (!settings_.heartbeats || !*settings_.heartbeats) return status;
    for (std::size_t i = 0; i < status.processes.size(); ++i) {
      if (is_alive(status.processes[i].state)) status.processes[i].heartbeat = (*settings_.heartbeats)(i);
    }
    return status;
  }

  void end() {
    over_ = true;
    clear_metrics();
    if (server_) server_->finish();
    entry_.remove();
    events_.flush();
  }

  void clear_metrics() {
    std::string why;
    if (settings_.metrics_directory.empty()) return;
    if (const auto directory = open_private_directory(settings_.metrics_directory, false, why))
      remove_metrics(directory->value(), control_.plan().pod_name);
  }

  JobControl& control_;
  const ServiceSettings settings_;
  StatusBoard board_;
  EventText text_;
  EventLog events_;
  std::unique_ptr<ControlHandler> actions_;
  std::unique_ptr<MetricsServer> metrics_;
  RunEntry entry_;
  std::unique_ptr<ControlServer> server_;
  std::shared_ptr<Services*> self_ =
      std::make_shared<Services*>(this);  // for what is posted: gone with this object
  bool posted_ = false, started_ = false, published_ = false;
  bool over_ = false;  // nobody is told any more
};

}  // namespace

MakeJobPart job_services(ServiceSettings settings) {
  return [settings = std::move(settings)](JobControl& control) -> std::unique_ptr<JobPart> {
    return std::make_unique<Services>(control, settings);
  };
}

}  // namespace fleetrun::launcher
