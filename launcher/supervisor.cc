#include "launcher/supervisor.h"

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>

#include "launcher/server_gate.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::seconds kKillPatience{
    10};  // a process that SIGKILL does not end is stuck in the kernel

std::vector<Role> roles_of(const Plan& plan) {
  std::vector<Role> roles;
  for (const ProcessSpec& process : plan.processes) roles.push_back(process.identity.role);
  return roles;
}

class Supervisor final : public PodListener {
 public:
  Supervisor(const Plan& plan, const std::vector<LogFile>& logs, PortLeases& leases,
             const RunSettings& settings, JobListener& listener)
      : plan_(plan),
        logs_(logs),
        leases_(leases),
        settings_(settings),
        listener_(listener),
        state_(roles_of(plan)),
        signals_(loop_),
        grace_(loop_),
        last_resort_(loop_) {}

  JobState run() {
    listen_for_signals();
    start_following();
    pod_ = start_pod(loop_, settings_.init, *this);
    perform(state_.begin());
    loop_.run();
    return std::move(state_);
  }

  void on_frame(const Frame& frame) override {
    if (const auto* contained = std::get_if<ContainedFrame>(&frame)) listener_.on_contained(contained->level);
    if (const auto* started = std::get_if<StartedFrame>(&frame)) {
      if (++started_ == plan_.processes.size()) listener_.on_running(started_);
      handle(Started{started->index});
    }
    if (const auto* failed = std::get_if<FailedFrame>(&frame))
      handle(NotStarted{failed->index, failed->stage, failed->error});
    if (const auto* exited = std::get_if<ExitedFrame>(&frame)) {
      const ExitReason reason = exit_reason_from(exited->wait_status);
      if (view_) view_->ended(exited->index, !reason.ok() && state_.phase() < Phase::stopping);
      if (gate_ && reason.ok()) gate_->forget(self_endpoint(plan_.processes[exited->index].identity));
      handle(Exited{exited->index, reason});
    }
    if (std::holds_alternative<EmptiedFrame>(frame)) on_emptied();
  }

  void on_lost() override {
    if (emptied_) return;
    handle(PodLost{});
    on_emptied();
  }

 private:
  void listen_for_signals() {
    signals_.add(SIGINT);
    signals_.add(SIGTERM);
    struct sigaction inherited = {};
    ::sigaction(SIGHUP, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) signals_.add(SIGHUP);  // nohup is respected
    await_signal();
  }

  void await_signal() {
    signals_.async_wait([this](const error_code& error, int number) {
      if (error) return;
      listener_.on_signal(number, state_.phase() == Phase::stopping || state_.phase() == Phase::killing);
      handle(StopAsked{number});
      if (emptied_) loop_.stop();  // only the output is left, and nobody wants to wait for it
      await_signal();
    });
  }

  void start_following() {
    const auto& viewed = settings_.viewed;
    if (std::all_of(viewed.begin(), viewed.end(),
                    [](const ViewedProcess& process) { return process.showing == Showing::never; }))
      return;
    view_ = view_logs(loop_, viewed, settings_.view);
    for (std::size_t i = 0; i < logs_.size(); ++i) view_->attach(i, logs_[i].path, logs_[i].start);
  }

  void handle(const Event& event) { perform(state_.on(event)); }

  void perform(const std::vector<Action>& actions) {
    for (const Action& action : actions) std::visit([this](const auto& a) { perform_one(a); }, action);
  }

  void perform_one(const StartProcess& action) {
    const ProcessSpec& process = plan_.processes[action.index];
    for (const Endpoint& port : process.ports) leases_.release(port);
    for (const Endpoint& port : process.own_ports) leases_.share(port);
    const int input = plan_.processes.size() == 1 ? settings_.input : -1;
    pod_->start(action.index, process, {.log_fd = logs_[action.index].fd.value(), .stdin_fd = input});
  }

  void perform_one(const AskToStop& action) { pod_->signal(action.index, SIGTERM, true); }

  void perform_one(const AwaitServers&) {
    gate_ =
        watch_servers(loop_, plan_.processes.front().identity.servers, plan_.ready_timeout, [this](bool all) {
          if (all)
            handle(ServersReady{});
          else
            handle(ReadyTimeout{});
        });
  }

  void perform_one(const ArmGrace&) {
    if (gate_) gate_->stop();
    grace_.expires_after(plan_.roles.front().grace);
    grace_.async_wait([this](const error_code& error) {
      if (!error) handle(GraceElapsed{});
    });
  }

  void perform_one(const KillPod&) {
    grace_.cancel();
    pod_->kill();
    arm_last_resort();
  }

  void perform_one(const EndJob&) {
    if (gate_) gate_->stop();
    grace_.cancel();
    if (state_.pod_lost()) return;
    pod_->finish();
    arm_last_resort();
  }

  void perform_one(const WarnNotReady&) {
    listener_.on_warning("not every server accepts connections after " +
                         std::to_string(std::chrono::duration<double>(plan_.ready_timeout).count()) +
                         " s; the trainers start anyway (--ready-timeout)");
  }

  void arm_last_resort() {
    last_resort_.expires_after(kKillPatience);
    last_resort_.async_wait([this](const error_code& error) {
      if (error) return;
      listener_.on_warning("a process does not end although it was killed; fleetrun-init stays with it");
      on_emptied();
    });
  }

  /// Nothing writes to the logs any more: what is left to show is shown, then the loop ends.
  void on_emptied() {
    if (emptied_) return;
    emptied_ = true;
    if (!state_.pod_lost() && state_.phase() != Phase::done)
      handle(PodLost{});  // init ended on its own account
    grace_.cancel();
    last_resort_.cancel();
    if (view_)
      view_->drain([this] { loop_.stop(); });
    else
      loop_.stop();
  }

  const Plan& plan_;
  const std::vector<LogFile>& logs_;
  PortLeases& leases_;
  const RunSettings& settings_;
  JobListener& listener_;
  JobState state_;
  asio::io_context loop_{1};
  asio::signal_set signals_;
  asio::steady_timer grace_, last_resort_;
  std::unique_ptr<Pod> pod_;
  std::unique_ptr<ServerGate> gate_;
  std::unique_ptr<LogView> view_;
  std::size_t started_ = 0;
  bool emptied_ = false;
};

}  // namespace

JobState run_job(const Plan& plan, const std::vector<LogFile>& logs, PortLeases& leases,
                 const RunSettings& settings, JobListener& listener) {
  return Supervisor(plan, logs, leases, settings, listener).run();
}

}  // namespace fleetrun::launcher
