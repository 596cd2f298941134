#include "launcher/record/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <exception>
#include <memory>
#include <utility>

#include "launcher/logs/log_files.h"
#include "runtime/base/own_file.h"
#include "runtime/base/version.h"
#include "runtime/base/write_all.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;

UniqueFd open_record(const Plan& plan, int flags) {
  const UniqueFd directory = open_pod_directory(plan);
  return UniqueFd(open_own_at(directory.value(), kRecordName, O_WRONLY | O_NONBLOCK | flags, Readers::owner));
}

class Recorder final : public JobPart {
 public:
  Recorder(JobControl& control, RecorderSettings settings)
      : control_(control), redactor_(std::move(settings.redactor)) {
    add(RecordOpening{.version = FLEETRUN_VERSION,
                      .began = event_time_now(),
                      .fleetrun_pid = ::getpid(),
                      .seed = settings.seed,
                      .first_attempt = settings.first_attempt,
                      .torchrun = settings.torchrun,
                      .command = std::move(settings.command),
                      .plan = recorded_plan(control.plan())});
  }
  ~Recorder() override { flush(); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void on_event(const JobEvent& event) override {
    add(Told{event_time_now(), event});
    // The first process does not wait for a file.
    if (std::holds_alternative<event::ProcessStarted>(event) ||
        std::holds_alternative<event::ProcessNotStarted>(event))
      started_ = true;
    if (started_ && !std::exchange(posted_, true))
      asio::post(control_.loop(), [weak = std::weak_ptr<Recorder*>(self_)] {
        if (const auto self = weak.lock()) (*self)->flush();
      });
  }

  void on_record(const JobRecord& record) override {
    std::visit([this](const auto& each) { note(each); }, record);
  }

 private:
  void note(const Decided& decided) { add(Decision{decided.event, words_of(decided.actions)}); }
  void note(const Replanned&) { add(PlanMade{recorded_plan(control_.plan())}); }
  template <class Other>
  void note(const Other& other) {
    add(other);
  }

  void add(const RecordEntry& entry) {
    if (!lost_) unwritten_ += to_frame(entry, redactor_);
  }

  void flush() noexcept {
    posted_ = false;
    if (lost_ || unwritten_.empty()) return;
    try {
      if (!file_) file_ = open_record(control_.plan(), O_CREAT | O_TRUNC);
      lost_ = !file_ || !write_all(file_.value(), unwritten_);
    } catch (const std::exception&) {
      lost_ = true;
    }
    unwritten_.clear();
  }

  JobControl& control_;
  const Redactor redactor_;
  UniqueFd file_;
  std::string unwritten_;
  std::shared_ptr<Recorder*> self_ = std::make_shared<Recorder*>(this);  // for what is posted
  bool posted_ = false, started_ = false;
  bool lost_ = false;  // a record with a hole is none
};

}  // namespace

Redactor job_redactor(const Plan& plan, const Environ& environment, const std::vector<std::string>& command) {
  Redactor redactor;
  redactor.learn(environment);
  redactor.learn(command);
  for (const ProcessSpec& process : plan.processes) {
    redactor.learn(process.environment);
    redactor.learn(process.argv);
  }
  return redactor;
}

MakeJobPart flight_recorder(RecorderSettings settings) {
  return [settings = std::move(settings)](JobControl& control) -> std::unique_ptr<JobPart> {
    return std::make_unique<Recorder>(control, settings);
  };
}

void end_record(const Plan& plan, RecordEnd end, const Redactor& redactor) noexcept {
  try {
    const UniqueFd file = open_record(plan, O_APPEND);
    if (file) write_all(file.value(), to_frame(std::move(end), redactor));
  } catch (const std::exception&) {
    // As with everything else that is recorded.
  }
}

}  // namespace fleetrun::launcher
