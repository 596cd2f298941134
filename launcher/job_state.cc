#include "launcher/job_state.h"

#include <algorithm>

namespace fleetrun::launcher {

JobState::JobState(std::vector<Role> roles) : roles_(std::move(roles)), lives_(roles_.size(), Life::waiting) {
  if (std::find(roles_.begin(), roles_.end(), Role::server) != roles_.end()) phase_ = Phase::preparing;
}

std::vector<Action> JobState::begin() {
  std::vector<Action> actions;
  if (phase_ == Phase::preparing) {
    start_role(Role::server, actions);
    actions.push_back(AwaitServers{});
  } else {
    start_role(Role::trainer, actions);
  }
  return actions;
}

std::vector<Action> JobState::on(const Event& event) {
  std::vector<Action> actions;
  if (phase_ == Phase::done) return actions;
  std::visit([&](const auto& e) { on_event(e, actions); }, event);
  return actions;
}

void JobState::on_event(const Started&, std::vector<Action>&) {}

void JobState::on_event(const Exited& event, std::vector<Action>& actions) {
  lives_[event.index] = Life::ended;
  const bool undisturbed = phase_ == Phase::preparing || phase_ == Phase::running;
  if (undisturbed && !event.reason.ok()) return fail({event.index, event.reason}, actions);
  if (phase_ == Phase::preparing && all(Role::server, Life::ended)) on_event(ServersReady{}, actions);
  if (phase_ == Phase::running && all(Role::trainer, Life::ended)) stop(actions);
  finish_if_ended(actions);
}

void JobState::on_event(const NotStarted& event, std::vector<Action>& actions) {
  lives_[event.index] = Life::ended;
  if (phase_ == Phase::preparing || phase_ == Phase::running) return fail({event.index, event}, actions);
  finish_if_ended(actions);
}

void JobState::on_event(const ServersReady&, std::vector<Action>& actions) {
  if (phase_ != Phase::preparing) return;
  phase_ = Phase::running;
  start_role(Role::trainer, actions);
}

void JobState::on_event(const ReadyTimeout&, std::vector<Action>& actions) {
  if (phase_ != Phase::preparing) return;
  actions.push_back(WarnNotReady{});
  on_event(ServersReady{}, actions);
}

void JobState::on_event(const GraceElapsed&, std::vector<Action>& actions) {
  if (phase_ != Phase::stopping) return;
  phase_ = Phase::killing;
  actions.push_back(KillPod{});
}

void JobState::on_event(const StopAsked& event, std::vector<Action>& actions) {
  if (phase_ == Phase::killing) return;
  // A signal during the stop that follows a failure hurries it, and the failure stays the outcome.
  const bool again = phase_ == Phase::stopping;
  if (!failure_ && !stop_signal_) stop_signal_ = event.signal;
  if (again) {
    phase_ = Phase::killing;
    actions.push_back(KillPod{});
    return;
  }
  stop(actions);
  finish_if_ended(actions);
}

void JobState::on_event(const PodLost&, std::vector<Action>& actions) {
  pod_lost_ = true;
  phase_ = Phase::done;
  actions.push_back(EndJob{});
}

void JobState::start_role(Role role, std::vector<Action>& actions) {
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i] != role) continue;
    lives_[i] = Life::alive;
    actions.push_back(StartProcess{i});
  }
}

void JobState::fail(Failure failure, std::vector<Action>& actions) {
  failure_ = std::move(failure);
  stop(actions);
  finish_if_ended(actions);
}

void JobState::stop(std::vector<Action>& actions) {
  phase_ = Phase::stopping;
  bool any = false;
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    if (lives_[i] == Life::waiting) lives_[i] = Life::ended;
    if (lives_[i] != Life::alive) continue;
    actions.push_back(AskToStop{i});
    any = true;
  }
  if (any) actions.push_back(ArmGrace{});
}

void JobState::finish_if_ended(std::vector<Action>& actions) {
  if (phase_ != Phase::stopping && phase_ != Phase::killing) return;
  if (std::any_of(lives_.begin(), lives_.end(), [](Life life) { return life == Life::alive; })) return;
  phase_ = Phase::done;
  actions.push_back(EndJob{});
}

bool JobState::all(Role role, Life life) const {
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i] == role && lives_[i] != life) return false;
  }
  return true;
}

}  // namespace fleetrun::launcher
