#include "launcher/run/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "launcher/failure/explainer.h"
#include "launcher/failure/report.h"
#include "launcher/host/job_signals.h"
#include "launcher/plan/make_plan.h"
#include "launcher/plan/plan_spares.h"
#include "launcher/run/pod_reports.h"
#include "launcher/run/readiness.h"
#include "runtime/base/still_here.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::seconds kKillPatience{
    10};  // a process that SIGKILL does not end is stuck in the kernel
constexpr std::chrono::seconds kNamedPatience{1};  // when it has been named already
// Processes may move to cgroups of their own, most do so early: when to look where they are.
constexpr std::chrono::milliseconds kFirstLook{20}, kLongestLook{5'000};
constexpr std::chrono::milliseconds kLastWordsTime{200};  // for them to get through --log_through's writer
constexpr std::chrono::milliseconds kSettleTime{500};     // for a failure to show after its first consequence

class Supervisor final : public PodListener, public JobControl, private PodInWorld {
 public:
  Supervisor(Plan plan, std::vector<LogFile> logs, PortLeases& leases, RunSettings settings)
      : plan_(std::move(plan)),
        logs_(std::move(logs)),
        leases_(leases),
        settings_(std::move(settings)),
        state_(plan_.roles, roles_of(plan_), RestartPolicy(plan_.restart, settings_.seed),
               settings_.world.link ? std::optional(InWorld{settings_.world.world.attempt}) : std::nullopt),
        lives_(plan_.processes.size()),
        own_loop_(settings_.world.link ? nullptr : std::make_unique<asio::io_context>(1)),
        loop_(own_loop_ ? *own_loop_ : settings_.world.link->loop()),
        signals_(loop_, signals_of(settings_.signals, settings_.hangup_ignored),
                 [this](int number) { on_signal(number); }),
        last_resort_(loop_),
        timeout_(loop_),
        look_(loop_),
        settle_(loop_) {}

  JobResult run() {
    for (const MakeJobPart& make : settings_.parts) {
      if (auto part = make(*this)) parts_.push_back(std::move(part));
    }
    if (link()) link()->attach(this);
    start_log_through();
    pod_ = start_pod(loop_, settings_.init, *this);
    arm_timeout();
    if (link()) lease_renewed(link()->lease());
    explainer_.begin();
    arm_look(kFirstLook);
    perform(state_.begin());
    view();
    if (link()) tell(world_began(settings_.world.world));
    loop_.run();
    pod_.reset();
    if (link()) link()->attach(nullptr);
    if (fault_) std::rethrow_exception(fault_);
    return {std::move(state_), std::move(plan_),     std::move(logs_),
            std::move(cause_), explainer_.history(), std::move(job_end_)};
  }

  // PodListener
  void on_frame(const Frame& frame) override {
    std::visit([this](const auto& f) { on(f); }, frame);
  }

  void on_lost() override {
    if (emptied_) return;
    handle(PodLost{});
    on_emptied();
  }

  // JobControl
  asio::io_context& loop() override { return loop_; }
  const Plan& plan() const override { return plan_; }
  const std::vector<LogFile>& logs() const override { return logs_; }

  void send_signal(std::size_t index, int number) override {
    if (!state_.alive(index)) return;
    record(SignalSent{index, number});
    pod_->signal(index, number, false);
  }

  void request_stop(bool now) override {
    if (link()) link()->stop(SIGTERM);
    handle(StopAsked{SIGTERM});
    if (now) handle(StopAsked{SIGTERM});
  }

  void report_hang(const event::HangFound& hang) override {
    tell(hang);
    handle(Hung{hang.culprits});
  }

  void heard(const MemberSaid& said) override { handle(said); }
  void want(const CountWanted& wanted) override { handle(wanted); }
  void tell(const JobEvent& event) override {
    explainer_.on_event(event);
    for (JobObserver* observer : settings_.observers) observer->on_event(event);
    for (const auto& part : parts_) part->on_event(event);
  }

 private:
  /// The current attempt of a process.
  struct Life {
    int attempt = 0;
    pid_t pid = -1;
  };

  WorldLink* link() const { return settings_.world.link; }

  void record(const JobRecord& record) {
    explainer_.on_record(record);
    for (const auto& part : parts_) part->on_record(record);
  }

  // PodInWorld
  void world_ends(const std::string& why, bool at_once) override {
    tell(event::WorldEnded{why, at_once});
    handle(WorldEnds{why, at_once});
  }

  void world_begins(const World& world, std::size_t node_rank) override {
    settings_.world.adopt(world, node_rank);
    tell(world_began(world));
    handle(WorldBegins{world.attempt});
  }

  void world_updated(const World& world, std::size_t node_rank) override {
    settings_.world.adopt(world, node_rank);
    tell(world_began(world));
  }

  void lease_renewed(const PodLease& lease) override {
    if (pod_) pod_->lease({.stands_ns = lease.stands.count() * 1'000, .ends_ns = lease.ends.count() * 1'000});
  }

  void job_decided(const JobEnd& end) override {
    job_end_ = end;
    handle(JobDecided{end.why});
  }

  void news(NewsLevel level, const std::string& text) override { tell(news_event(level, text)); }

  void perform_one(const ReportFailing& action) { link()->failing(plan_.processes[action.index].name); }

  void perform_one(const ReportFailure& action) {
    const Report report = make_report(state_, plan_, explainer_.history());
    NodeFailure failure = node_failure(action.explained, report, plan_, explainer_.history());
    failure.screen = settings_.world.failure_screen(report, plan_, explainer_.history(), logs_);
    link()->failed(failure);
  }

  void perform_one(const ReportDrained&) {
    try {
      link()->ready(settings_.world.renew_offer());
    } catch (...) {
      fault_ = std::current_exception();
      loop_.stop();
    }
  }

  void perform_one(const ReportDone&) { link()->done(); }

  // Frames of init

  void on(const ContainedFrame& f) { tell(event::Contained{f.level, f.cgroup, f.reason, f.init_pid}); }

  void on(const StartedFrame& frame) {
    Life& life = lives_[frame.index];
    life.pid = frame.pid;
    tell(event::ProcessStarted{frame.index, frame.pid, life.attempt, frame.time_ns});
    handle(Started{frame.index});
    started_.insert(frame.index);
    if (started_.size() >= state_.count_wanted() && !std::exchange(all_running_, true)) {
      tell(event::AllRunning{});
      if (link()) link()->running();
    }
  }

  void on(const FailedFrame& frame) {
    tell(event::ProcessNotStarted{frame.index, lives_[frame.index].attempt, frame.stage, frame.error});
    handle(NotStarted{frame.index, frame.stage, frame.error});
  }

  void on(const ExitedFrame& frame) {
    for (const auto& part : parts_) part->catch_up();
    const ExitReason reason = exit_reason_from(frame.wait_status);
    const bool asked = state_.asked(frame.index);
    if (through_ && !reason.ok()) logs_[frame.index].lost = through_->last_words(frame.index, kLastWordsTime);
    const auto& [attempt, pid] = lives_[frame.index];
    tell(event::ProcessExited{frame.index, pid, attempt, reason, asked, frame.time_ns, frame.max_rss_kib});
    if (view_) view_->ended(frame.index, !reason.ok() && !asked);
    for (auto& [role, probe] : probes_) {
      if (reason.ok()) probe->forget(frame.index);
    }
    if (only_follows(frame.index, reason)) return hold_back({frame.index, reason});
    release_held();
    handle(Exited{frame.index, reason});
  }

  /// Whether this looks like the consequence of another process's failure that is still under way. Stopping
  /// that one now would take the words out of its mouth.
  bool only_follows(std::size_t index, const ExitReason& reason) const {
    if (reason.ok() || state_.stopping() || state_.phase() == Phase::done) return false;
    std::size_t alive = 0;
    for (std::size_t i = 0; i < lives_.size(); ++i) alive += state_.alive(i) && !state_.stands_by(i) ? 1 : 0;
    const bool closed_pipe = reason.kind == ExitReason::Kind::signaled && reason.code == SIGPIPE;
    return alive > held_.size() + 1 && (closed_pipe || Explainer::only_follows(logs_[index]));
  }

  void hold_back(Exited exited) {
    held_.push_back(std::move(exited));
    if (held_.size() > 1) return;
    settle_.expires_after(kSettleTime);
    settle_.async_wait(still_here_.only([this](const error_code& error) {
      if (!error) release_held();
    }));
  }

  void release_held() {
    settle_.cancel();
    for (Exited& exited : std::exchange(held_, {})) handle(std::move(exited));
  }

  void on(const SweptFrame& frame) {
    if (frame.index != kEveryProcess) return handle(Swept{frame.index});
    last_resort_.cancel();  // what was killed has ended
    handle(Swept{});
  }

  void on(const StandsFrame& frame) { tell(event::PodStands{frame.still}); }
  void on(const LeftRunningFrame& frame) { tell(left_running(frame)); }
  void on(const ToldToEndFrame&) { signals_.hear_also(SIGTERM); }

  /// Before the exits of what was killed: those are nobody's failure.
  void on(const LapsedFrame&) {
    const bool undisturbed = state_.phase() == Phase::starting || state_.phase() == Phase::running;
    if (undisturbed) world_ends("its lease is over: this launcher was stopped, or is late", true);
    link()->lapsed();
  }

  void on(const UnkillableFrame& frame) {
    tell(unkillable(frame));
    unkillable_.push_back(frame.pid);
    arm_last_resort(kNamedPatience);
  }

  /// Posted, so that an explanation that is under way comes first: init may end on its own account.
  void on(const EmptiedFrame&) {
    release_held();
    asio::post(loop_, still_here_.only([this] { on_emptied(); }));
  }

  template <class Other>
  void on(const Other&) {}  // frames that only fleetrun sends

  // Signals

  void on_signal(int number) {
    if (emptied_) loop_.stop();  // only the output is left, and nobody wants to wait for it
    const SignalRule rule = rule_for(settings_.signals, number, settings_.hangup_ignored);
    switch (rule.action) {
      case SignalAction::ignore:
        return;
      case SignalAction::forward:
        tell(event::SignalForwarded{rule.as != 0 ? rule.as : number});
        for (std::size_t i = 0; i < lives_.size(); ++i) send_signal(i, rule.as != 0 ? rule.as : number);
        return;
      case SignalAction::stop:
      case SignalAction::drain:
      case SignalAction::now:
        const bool drain = rule.action == SignalAction::drain;
        if (drain && state_.stopping()) return;  // Slurm may say it twice
        stop_as_ = rule.as;
        tell(event::SignalReceived{number, state_.stopping()});
        if (link()) link()->stop(drain ? kDrained : number);
        handle(StopAsked{number, drain});
        if (rule.action == SignalAction::now) handle(StopAsked{number});
    }
  }

  // Actions

  void handle(const Event& event) {
    const std::vector<Action> actions = state_.on(event);
    record(Decided{event, actions});
    perform(actions);
  }

  void perform(const std::vector<Action>& actions) {
    for (const Action& action : actions) std::visit([this](const auto& a) { perform_one(a); }, action);
  }

  void perform_one(const Tell& action) { tell(action.event); }

  void perform_one(const PrepareAttempt& action) {
    started_.clear();
    all_running_ = false;
    try {
      if (settings_.replan) plan_ = settings_.replan(action.attempt);
      record(Replanned{});
      std::vector<std::size_t> all(plan_.processes.size());
      std::iota(all.begin(), all.end(), std::size_t{0});
      logs_ = open_attempt_logs(plan_, action.attempt, all, warner());
    } catch (...) {
      fault_ = std::current_exception();
      loop_.stop();
      return;
    }
    for (std::size_t i = 0; view_ && i < logs_.size(); ++i) view_->attach(i, logs_[i]);
  }

  void perform_one(const StartProcess& action) {
    if (fault_) return;
    const auto delay = start_delay(parts_, action);
    if (delay.count() == 0) return start(action);
    auto& timer = delayed_.try_emplace(action.index, loop_).first->second;
    timer.expires_after(delay);
    timer.async_wait(still_here_.only([this, action](const error_code& error) {
      if (!error && delayed_.erase(action.index) != 0) start(action);
    }));
  }

  /// A process whose start is delayed ends by never being started.
  void give_up_delayed(std::size_t index) {
    if (delayed_.erase(index) != 0)
      asio::post(loop_, still_here_.only([this, index] { handle(Exited{index, {}}); }));
  }

  void start(const StartProcess& action) {
    const ProcessSpec& process = plan_.processes[action.index];
    if (action.attempt != logs_[action.index].attempt) {
      const std::size_t one[] = {action.index};
      LogFile& log = logs_[action.index];
      log = std::move(open_attempt_logs(plan_, action.attempt, one, warner()).front());
      if (view_) view_->attach(action.index, log);
    }
    lives_[action.index] = {.attempt = action.attempt};
    for (const Endpoint& port : process.ports) leases_.release(port);
    for (const Endpoint& port : process.own_ports) leases_.share(port);
    StartExtras extras;
    const UniqueFd to_writer = through_ ? through_->open(action.index, logs_[action.index]) : UniqueFd();
    extras.log_fd = to_writer ? to_writer.value() : logs_[action.index].fd.value();
    const Attempt attempt{action.attempt, state_.group_attempt(), state_.ready_in(process.role)};
    extras.environment = attempt_overlay(plan_, process, settings_.values, attempt).entries();
    if (const LogFile& log = logs_[action.index]; log.out)
      extras.passed = {{log.out.value(), STDOUT_FILENO}, {log.err.value(), STDERR_FILENO}};
    UniqueFd ready;
    for (const NamedDescriptor& descriptor : process.descriptors) {
      if (descriptor.variable == kReadyVariable) std::tie(ready_[action.index], ready) = ready_pipe();
      const int fd = descriptor.variable == kReadyVariable
                         ? ready.value()
                         : open_descriptor(parts_, descriptor.variable, action.index);
      if (fd >= 0) extras.passed.push_back({fd, descriptor.number});
      if (fd < 0) extras.environment.push_back(descriptor.variable);  // without a value: it is taken away
    }
    extras.alone = state_.is_replaceable(action.index) ||
                   (plan_.roles[process.role].restart == RestartScope::process && plan_.restart.any());
    if (state_.stands_by(action.index))
      std::ranges::move(standby_environment(plan_), std::back_inserter(extras.environment));
    for (const auto& part : parts_) part->prepare(action.index, extras);
    pod_->start(action.index, process, extras);
  }

  void perform_one(const AwaitRole& action) {
    const Readiness& readiness = plan_.roles[action.role].ready;
    std::vector<ReadySign> signs = signs_here(plan_, logs_, action.role);
    for (ReadySign& sign : signs) {
      if (const auto pipe = ready_.find(sign.index); pipe != ready_.end())
        sign.descriptor = std::move(pipe->second);
    }
    if (link()) std::ranges::move(signs_of_other_hosts(plan_, action.role), std::back_inserter(signs));
    const auto on_done = [this, role = action.role](bool all) {
      handle(all ? Event(RoleReady{role}) : Event(ReadyTimeout{role}));
    };
    probes_[action.role] = watch_role(loop_, readiness, std::move(signs), plan_.ready_timeout, on_done);
  }

  void stop_probes() {
    for (auto& [role, probe] : probes_) probe->stop();
  }

  void perform_one(const AskToStop& action) {
    give_up_delayed(action.index);
    const int number = stop_as_ != 0 ? stop_as_ : plan_.roles[state_.role_of(action.index)].stop_signal;
    record(SignalSent{action.index, number});
    pod_->signal(action.index, number, true);
  }

  void perform_one(const KillProcess& action) {
    record(SignalSent{action.index, SIGKILL});
    pod_->kill(action.index);
  }

  void perform_one(const ArmGrace& action) {
    stop_probes();
    auto& timer = graces_.try_emplace(action.role, loop_).first->second;
    timer.expires_after(plan_.roles[action.role].grace);
    timer.async_wait(still_here_.only([this, role = action.role](const error_code& error) {
      if (!error) handle(GraceElapsed{role});
    }));
  }

  void perform_one(const KillPod&) {
    graces_.clear();
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      give_up_delayed(i);
      record(SignalSent{i, SIGKILL});
    }
    pod_->kill();
    arm_last_resort();
  }

  /// Posted, so that requests to stop the others are on their way before the log is read.
  void perform_one(const ExplainFailure& action) {
    asio::post(loop_, still_here_.only([this, action] { explain(action); }));
  }

  void explain(const ExplainFailure& action) {
    Explanation explanation = explainer_.explain(action.index, action.alone, plan_, logs_);
    Explained explained = explained_by(explanation, plan_, explainer_.history());
    explained.record.progress = progress_of(parts_);
    cause_ = explanation.cause;
    tell(event::FailureExplained{explanation.index, lives_[explanation.index].attempt,
                                 std::move(explanation.cause)});
    handle(explained);
  }

  void perform_one(const Sweep& action) {
    if (action.index) return pod_->sweep(*action.index);
    graces_.clear();
    stop_probes();
    pod_->sweep();
  }

  void perform_one(const Rest& action) {
    if (action.backoff.count() == 0) return handle(BackoffElapsed{action.index});
    auto& timer = rests_.try_emplace(action.index.value_or(kEveryProcess), loop_).first->second;
    timer.expires_after(action.backoff);
    timer.async_wait(still_here_.only([this, index = action.index](const error_code& error) {
      if (!error) handle(BackoffElapsed{index});
    }));
  }

  void perform_one(const EndJob&) {
    stop_probes();
    graces_.clear();
    rests_.clear();
    if (state_.pod_lost()) return;
    pod_->finish(!state_.failure() && !state_.stop_signal() && !state_.timed_out());
    arm_last_resort();
  }

  // Time

  void arm_timeout() {
    if (!plan_.timeout) return;
    timeout_.expires_after(*plan_.timeout);
    timeout_.async_wait(still_here_.only([this](const error_code& error) {
      if (error) return;
      if (link()) link()->timed_out();
      handle(TimedOut{});
    }));
  }

  void arm_look(std::chrono::milliseconds delay) {
    look_.expires_after(delay);
    look_.async_wait(still_here_.only([this, delay](const error_code& error) {
      if (error) return;
      explainer_.look();
      arm_look(std::min(delay * 2, kLongestLook));
    }));
  }

  /// Neither a job nor its restart waits for ever for what cannot be killed.
  void arm_last_resort(std::chrono::milliseconds patience = kKillPatience) {
    last_resort_.expires_after(patience);
    last_resort_.async_wait(still_here_.only([this](const error_code& error) {
      if (error || (!unkillable_.empty() && !any_lives(unkillable_))) return;
      for (const pid_t pid : unkillable_) record(LeftAlive{pid});
      tell(event::Warning{"a process does not end although it was killed; fleetrun-init stays with it"});
      on_emptied();
    }));
  }

  // Output

  void view() {
    view_.emplace(loop_, settings_.views);
    for (std::size_t i = 0; i < logs_.size(); ++i) view_->attach(i, logs_[i]);
  }

  LogWarning warner() {
    return [this](const std::string& text) { tell(event::Warning{text}); };
  }

  /// Nothing writes to the logs any more: what is left to show is shown, then the loop ends.
  void on_emptied() {
    if (emptied_) return;
    emptied_ = true;
    if (!state_.pod_lost() && state_.phase() != Phase::done)
      handle(PodLost{});  // init ended on its own account
    graces_.clear();
    last_resort_.cancel();
    timeout_.cancel();
    look_.cancel();
    settle_.cancel();
    if (!through_) return show_rest();
    through_->finish([this] { show_rest(); });
  }

  void show_rest() {
    const int status = make_report(state_, plan_, explainer_.history()).exit_status;
    tell(event::JobEnded{job_end_ ? job_end_->exit_status : status});
    if (!view_) return loop_.stop();
    view_->drain([this] {
      if (const int error = view_->problem()) tell_unshown(error);
      loop_.stop();
    });
  }

  /// Whose reader or terminal has gone wants no more of it.
  void tell_unshown(int error) {
    if (error != EPIPE && error != EIO)
      tell(event::Warning{"not all output of the processes could be written: " +
                          std::string(::strerror(error)) + "; their logs have it"});
  }

  void start_log_through() {
    if (!settings_.log_through) return;
    settings_.log_through->on_lost = [this](std::size_t index, std::uint64_t bytes, int error) {
      tell(event::LogsTruncated{index, bytes, error});
      if (error != 0) tell(log_dropped(plan_.processes[index], logs_[index], error));
    };
    through_ = log_through(loop_, plan_, *settings_.log_through);
  }

  Plan plan_;
  std::vector<LogFile> logs_;
  PortLeases& leases_;
  RunSettings settings_;
  JobState state_;
  std::vector<Life> lives_;
  std::vector<Exited> held_;  // deaths that may be somebody else's fault, held back for a moment
  std::optional<Cause> cause_;
  std::exception_ptr fault_;                          // an attempt that could not be prepared
  std::optional<JobEnd> job_end_;                     // in a job of several hosts
  const std::unique_ptr<asio::io_context> own_loop_;  // of a job on this host alone
  asio::io_context& loop_;
  JobSignals signals_;
  std::map<std::size_t, asio::steady_timer> graces_;           // by role
  std::map<std::size_t, asio::steady_timer> rests_, delayed_;  // by process; rests_ also by kEveryProcess
  std::vector<pid_t> unkillable_;
  asio::steady_timer last_resort_, timeout_, look_, settle_;
  JobParts parts_;
  std::unique_ptr<Pod> pod_;
  std::map<std::size_t, std::unique_ptr<ReadinessProbe>> probes_;  // by role
  std::map<std::size_t, UniqueFd> ready_;  // by process: where it says that it is ready
  std::optional<JobView> view_;
  std::unique_ptr<LogThrough> through_;
  Explainer explainer_;
  int stop_as_ = 0;                // the user's signal for this stop, instead of the roles'
  std::set<std::size_t> started_;  // in this attempt of the group
  bool all_running_ = false;
  bool emptied_ = false;
  StillHere still_here_;  // the loop of a job of several hosts goes on without us
};

}  // namespace

JobResult run_job(Plan plan, std::vector<LogFile> logs, PortLeases& leases, RunSettings settings) {
  return Supervisor(std::move(plan), std::move(logs), leases, std::move(settings)).run();
}

}  // namespace fleetrun::launcher
