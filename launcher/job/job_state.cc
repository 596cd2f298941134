#include "launcher/job/job_state.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/base/recovery_words.h"

namespace fleetrun::launcher {
namespace {

bool says(const Explained& failure, std::string_view words) {
  return failure.record.signature.find(words) != std::string::npos;
}

}  // namespace

JobState::JobState(std::vector<RolePlan> roles, const std::vector<std::size_t>& role_of, RestartPolicy policy,
                   std::optional<InWorld> world)
    : roles_(std::move(roles)),
      role_of_(role_of),
      role_states_(roles_.size()),
      ready_in_(roles_.size()),
      processes_(role_of.size()),
      policy_(std::move(policy)),
      backoffs_(role_of.size()),
      in_world_(world.has_value()) {
  if (world) attempt_ = world->attempt;
  for (std::size_t i = 0; i < role_of.size(); ++i) processes_[i].role = role_of[i];
  const auto standby = standby_role(roles_);
  if (!standby) return;
  std::vector<std::size_t> trainers, waiting;
  for (std::size_t i = 0; i < role_of.size(); ++i) {
    if (role_of[i] == roles_[*standby].stands_by_for) trainers.push_back(i);
    if (role_of[i] == *standby) waiting.push_back(i);
  }
  replacements_.emplace(std::move(trainers), std::move(waiting));
}

bool JobState::is_replaceable(std::size_t index) const noexcept {
  if (!replacements_) return false;
  const RolePlan& role = roles_[processes_[index].role];
  return role.stands_by_for || processes_[index].role == roles_[*standby_role(roles_)].stands_by_for;
}

std::vector<Action> JobState::begin() {
  Actions actions;
  begin_attempt(actions);
  return actions;
}

std::vector<Action> JobState::on(const Event& event) {
  Actions actions;
  if (phase_ == Phase::done) return actions;
  std::visit([&](const auto& e) { on_event(e, actions); }, event);
  return actions;
}

void JobState::on_event(const Started&, Actions&) {}

void JobState::on_event(const Exited& event, Actions& actions) {
  Process& process = processes_[event.index];
  process.life = Life::ended;
  process.well = event.reason.ok() && !process.hung;
  process.end = event.reason;
  if (undisturbed() && !process.well) return fail(event.index, actions);
  if (undisturbed() && is_replaceable(event.index) && !replacements_->finish(event.index)) {
    first_failed_ = replacements_->lost().value_or(event.index);
    stop("a process failed, and another has ended its work: nobody can take its place", actions);
    return finish_if_ended(actions);
  }
  after_end(actions);
}

void JobState::on_event(const NotStarted& event, Actions& actions) {
  Process& process = processes_[event.index];
  process.life = Life::ended;
  process.well = false;
  process.end = event;
  if (undisturbed()) return fail(event.index, actions);
  after_end(actions);
}

void JobState::note_ready(std::size_t role) {
  role_states_[role].ready = true;
  ready_in_[role] = group_attempt_;
}

void JobState::on_event(const RoleReady& event, Actions& actions) {
  if (!undisturbed() || role_states_[event.role].ready) return;
  note_ready(event.role);
  actions.push_back(Tell{event::RoleReady{event.role}});
  start_what_can_be(actions);
}

void JobState::on_event(const ReadyTimeout& event, Actions& actions) {
  if (!undisturbed() || role_states_[event.role].ready) return;
  const bool ports = roles_[event.role].ready.kind == Readiness::Kind::port;
  actions.push_back(
      Tell{event::Warning{(ports ? "not every " + roles_[event.role].name + " accepts connections"
                                 : "not every " + roles_[event.role].name + " has said that it is ready") +
                          std::string(" in time; those that wait for it start anyway (--ready-timeout)")}});
  note_ready(event.role);
  start_what_can_be(actions);
}

void JobState::on_event(const GraceElapsed& event, Actions& actions) {
  if (phase_ != Phase::stopping) return;
  event::GraceElapsed told;
  bool others = false;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    if (process.life != Life::alive) continue;
    if (process.role != event.role) {
      others = others || !process.killed;
      continue;
    }
    process.killed = true;
    told.still_alive.push_back(i);
    actions.push_back(KillProcess{i});
  }
  if (told.still_alive.empty()) return;
  actions.push_back(Tell{std::move(told)});
  if (!others) phase_ = Phase::killing;
}

void JobState::on_event(const Explained& event, Actions& actions) {
  if (phase_ == Phase::explaining)
    decide_group(event, actions);
  else if (processes_[event.index].life == Life::explaining)
    decide_alone(event, actions);
}

void JobState::on_event(const Swept& event, Actions& actions) {
  if (event.index) {
    Process& process = processes_[*event.index];
    if (process.life != Life::sweeping) return;
    process.life = Life::resting;
    actions.push_back(Rest{event.index, backoffs_[*event.index]});
    return;
  }
  if (phase_ != Phase::sweeping) return;
  if (in_world_ && !stop_signal_ && !timed_out_) return meet(actions);
  if (!pending_backoff_) return end_job(actions);
  phase_ = Phase::resting;
  actions.push_back(Rest{std::nullopt, *pending_backoff_});
}

void JobState::on_event(const BackoffElapsed& event, Actions& actions) {
  if (event.index) {
    if (processes_[*event.index].life != Life::resting || !undisturbed()) return;
    ++attempt_;
    actions.push_back(Tell{event::AttemptBegan{attempt_}});
    return start(*event.index, actions);
  }
  if (phase_ != Phase::resting) return;
  pending_backoff_.reset();
  failure_.reset();
  first_failed_.reset();
  ++attempt_;
  begin_attempt(actions);
}

/// SIGTERM would only ask a process that does not listen. Its end then comes as Exited.
void JobState::on_event(const Hung& event, Actions& actions) {
  if (!undisturbed()) return;
  for (const std::size_t index : event.indices) {
    if (processes_[index].life != Life::alive) continue;
    processes_[index].hung = true;
    actions.push_back(KillProcess{index});
  }
}

void JobState::on_event(const MemberSaid& event, Actions& actions) {
  if (!undisturbed() || !is_replaceable(event.index)) return;
  replacements_->heard(event);
  begin_generation(actions);
}

void JobState::begin_generation(Actions& actions) {
  const auto began = replacements_->next();
  if (!began) return;
  for (const auto& replaced : began->replaced)
    processes_[replaced.by].role = *roles_[processes_[replaced.by].role].stands_by_for;
  actions.push_back(Tell{*began});
}

bool JobState::wanted(std::size_t index) const noexcept {
  const std::size_t role = role_of_[index];
  if (!roles_[role].wanted) return true;
  const auto first = std::find(role_of_.begin(), role_of_.end(), role) - role_of_.begin();
  return index - static_cast<std::size_t>(first) < *roles_[role].wanted;
}

std::size_t JobState::count_wanted() const noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < processes_.size(); ++i) count += wanted(i) ? 1 : 0;
  return count;
}

/// One that has ended is wanted again, or was not before.
void JobState::on_event(const CountWanted& event, Actions& actions) {
  roles_[event.role].wanted = event.count;
  if (!undisturbed() || !role_states_[event.role].started) return;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const Process& process = processes_[i];
    if (process.role == event.role && process.life == Life::ended && wanted(i)) start(i, actions);
  }
}

void JobState::note_signal(const StopAsked& event) {
  stop_signal_ = event.signal;
  drained_ = event.drain;
}

void JobState::on_event(const StopAsked& event, Actions& actions) {
  switch (phase_) {
    case Phase::starting:
    case Phase::running:
      note_signal(event);
      stop("fleetrun got " + signal_name(event.signal), actions);
      return finish_if_ended(actions);
    case Phase::stopping:
      // It hurries the stop that follows a failure, and the failure stays the outcome.
      if (!first_failed_ && !stop_signal_ && !timed_out_) note_signal(event);
      no_more_attempts_ = true;
      return kill_everything(actions);
    case Phase::sweeping:
    case Phase::resting:
    case Phase::rendezvous:
      note_signal(event);
      failure_.reset();
      pending_backoff_.reset();
      if (phase_ != Phase::sweeping) end_job(actions);
      return;
    case Phase::killing:
    case Phase::explaining:
    case Phase::done:
      return;
  }
}

void JobState::on_event(const TimedOut&, Actions& actions) {
  if (undisturbed()) {
    timed_out_ = true;
    stop("the time of the job is up (--timeout)", actions);
    return finish_if_ended(actions);
  }
  no_more_attempts_ = true;
  if (phase_ != Phase::sweeping && phase_ != Phase::resting && phase_ != Phase::rendezvous) return;
  timed_out_ = true;
  failure_.reset();
  pending_backoff_.reset();
  if (phase_ != Phase::sweeping) end_job(actions);
}

void JobState::on_event(const PodLost&, Actions& actions) {
  pod_lost_ = true;
  end_job(actions);
}

void JobState::on_event(const WorldEnds& event, Actions& actions) {
  world_ended_ = world_ended_ || !event.at_once;
  switch (phase_) {
    case Phase::starting:
    case Phase::running:
      if (event.at_once) {
        kill_everything(actions);
      } else {
        stop(event.why, actions);
      }
      return finish_if_ended(actions);
    case Phase::stopping:
      if (event.at_once) kill_everything(actions);
      return;
    case Phase::rendezvous:
      return meet(actions);
    default:
      return;  // on the way there
  }
}

void JobState::on_event(const WorldBegins& event, Actions& actions) {
  if (phase_ != Phase::rendezvous) return;
  failure_.reset();
  first_failed_.reset();
  all_start_again_ = false;
  attempt_ = event.attempt;
  done_reported_ = false;
  begin_attempt(actions);
}

void JobState::on_event(const JobDecided& event, Actions& actions) {
  job_decided_ = true;
  switch (phase_) {
    case Phase::starting:
    case Phase::running:
      stop(event.why, actions);
      return finish_if_ended(actions);
    case Phase::resting:
    case Phase::rendezvous:
      return end_job(actions);
    default:
      return;  // ends when the stop that is under way has ended
  }
}

/// Nothing runs, and nothing is left of what ran.
void JobState::meet(Actions& actions) {
  if (job_decided_) return end_job(actions);
  phase_ = Phase::rendezvous;
  if (!std::exchange(world_ended_, false)) return;
  actions.push_back(ReportDrained{});
}

void JobState::report_done(Actions& actions) {
  if (std::exchange(done_reported_, true)) return;
  actions.push_back(ReportDone{});
}

void JobState::begin_attempt(Actions& actions) {
  phase_ = Phase::starting;
  group_attempt_ = attempt_;
  role_states_.assign(roles_.size(), {});
  for (std::size_t i = 0; i < processes_.size(); ++i) processes_[i] = {.role = role_of_[i], .end = {}};
  if (replacements_) replacements_->begin_attempt();
  actions.push_back(Tell{event::AttemptBegan{attempt_}});
  if (std::exchange(begun_, true)) actions.push_back(PrepareAttempt{attempt_});
  start_what_can_be(actions);
}

/// Starts the roles whose `after` are all ready, and says which roles have to be watched for that.
void JobState::start_what_can_be(Actions& actions) {
  bool all_started = true;
  for (std::size_t role = 0; role < roles_.size(); ++role) {
    RoleState& state = role_states_[role];
    if (state.started) continue;
    const auto& after = roles_[role].after;
    if (!std::all_of(after.begin(), after.end(), [&](std::size_t r) { return role_states_[r].ready; })) {
      all_started = false;
      continue;
    }
    state.started = true;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i].role != role) continue;
      if (wanted(i))
        start(i, actions);
      else
        processes_[i].life = Life::ended;
    }
    // Nobody has to be watched that nobody waits for; one without a sign is ready once it is started.
    const bool awaited = std::any_of(roles_.begin(), roles_.end(), [role](const RolePlan& other) {
      return std::find(other.after.begin(), other.after.end(), role) != other.after.end();
    });
    if (!awaited) continue;
    if (roles_[role].ready.kind != Readiness::Kind::none) {
      actions.push_back(AwaitRole{role});
    } else {
      note_ready(role);
      return start_what_can_be(actions);
    }
  }
  if (!all_started) return;
  phase_ = Phase::running;
  if (in_world_ && work_is_done()) report_done(actions);  // a host of servers alone
}

void JobState::start(std::size_t index, Actions& actions) {
  Process& process = processes_[index];
  process = {.role = process.role, .life = Life::alive, .attempt = attempt_, .end = {}};
  if (is_replaceable(index)) replacements_->started(index);
  actions.push_back(StartProcess{index, attempt_});
}

void JobState::fail(std::size_t index, Actions& actions) {
  const RolePlan& role = roles_[processes_[index].role];
  const bool not_started = std::holds_alternative<NotStarted>(processes_[index].end);
  if (is_replaceable(index) && replace(index, actions)) return;
  if (role.restart == RestartScope::process && policy_.restarts() && !not_started) {
    processes_[index].life = Life::explaining;
    actions.push_back(ExplainFailure{index, true});
    return;
  }
  first_failed_ = index;
  if (in_world_) actions.push_back(ReportFailing{index});
  stop("a process failed", actions);
  finish_if_ended(actions);
}

/// Whether the job goes on without a restart of all.
bool JobState::replace(std::size_t index, Actions& actions) {
  Process& process = processes_[index];
  const bool not_started = std::holds_alternative<NotStarted>(process.end);
  const bool stood_by = replacements_->stands_by(index);
  const bool comes_again = replacements_->lose(index) && !not_started;
  if (!comes_again && !stood_by) {
    actions.push_back(
        Tell{event::Warning{"nobody takes the place of a trainer: " + replacements_->why_not()}});
    return false;
  }
  process.role = *standby_role(roles_);
  if (comes_again) {
    process.life = Life::explaining;
    actions.push_back(ExplainFailure{index, true});
  } else {
    actions.push_back(
        Tell{event::Warning{"a process that was to stand by fails at its start, and is not "
                            "started again; its log says why"}});
  }
  begin_generation(actions);
  return true;
}

void JobState::restart_alone(std::size_t index, std::chrono::milliseconds backoff, std::string why,
                             Actions& actions) {
  processes_[index].life = Life::sweeping;
  backoffs_[index] = backoff;
  actions.push_back(
      Tell{event::RestartDecided{RestartScope::process, index, attempt_ + 1, backoff, std::move(why)}});
  actions.push_back(Sweep{index});
}

void JobState::decide_alone(const Explained& event, Actions& actions) {
  Process& process = processes_[event.index];
  if (is_replaceable(event.index)) return restart_alone(event.index, {}, "to stand by", actions);
  if (says(event, kCannotGoOnAlone) && process.attempt > group_attempt_) {
    all_start_again_ = true;
    return end_attempt(event, actions);
  }
  const RestartDecision decision =
      says(event, kHasLostItsTables)
          ? GiveUp{event.record.who + " has lost its tables, and would be without them each time"}
          : policy_.on_failure(event.record, RestartScope::process);
  if (const auto* restart = std::get_if<Restart>(&decision))
    return restart_alone(event.index, restart->backoff, restart->why, actions);
  const std::string& why = std::get<GiveUp>(decision).why;
  if (!why.empty()) actions.push_back(Tell{event::GaveUp{why}});
  failure_ = Failure{event.index, process.attempt, process.end, process.hung};
  end_attempt(event, actions);
}

/// Because of a process that is not restarted alone, or not any more.
void JobState::end_attempt(const Explained& event, Actions& actions) {
  processes_[event.index].life = Life::ended;
  first_failed_ = event.index;
  if (in_world_) actions.push_back(ReportFailing{event.index});
  if (in_world_ && failure_) actions.push_back(ReportFailure{event});
  stop("a process failed", actions);
  finish_if_ended(actions);
}

void JobState::decide_group(const Explained& event, Actions& actions) {
  const Process& root = processes_[event.index];
  failure_ = Failure{event.index, root.attempt, root.end, root.hung};
  if (in_world_) {
    actions.push_back(ReportFailure{event});
    if (no_more_attempts_ || job_decided_) return end_job(actions);
    phase_ = Phase::sweeping;
    actions.push_back(Sweep{});
    return;
  }
  if (no_more_attempts_) return end_job(actions);
  event::RestartDecided told{RestartScope::group, event.index, attempt_ + 1, {}, {}};
  if (event.port_clash && !port_retry_used_) {
    port_retry_used_ = true;
    told.why = "one of its ports was taken by another process: retrying with other ports";
  } else if (std::exchange(all_start_again_, false)) {
    told.why = "it was started again alone, and cannot go on without the others";
  } else {
    const RestartDecision decision = policy_.on_failure(event.record, roles_[root.role].restart);
    if (const auto* give_up = std::get_if<GiveUp>(&decision)) {
      if (!give_up->why.empty()) actions.push_back(Tell{event::GaveUp{give_up->why}});
      return end_job(actions);
    }
    told.backoff = std::get<Restart>(decision).backoff;
    told.why = std::get<Restart>(decision).why;
  }
  pending_backoff_ = told.backoff;
  phase_ = Phase::sweeping;
  actions.push_back(Tell{std::move(told)});
  actions.push_back(Sweep{});
}

/// A process has ended, and it was not a failure, or one that no longer matters.
void JobState::after_end(Actions& actions) {
  if (undisturbed()) {
    for (std::size_t role = 0; role < roles_.size(); ++role) {
      if (role_states_[role].started && !role_states_[role].ready && role_ended(role))
        on_event(RoleReady{role}, actions);  // whoever waits for it need not wait longer
    }
    if (phase_ == Phase::running && work_is_done()) {
      if (in_world_)
        report_done(actions);
      else
        stop("", actions);
    }
  }
  finish_if_ended(actions);
}

void JobState::stop(const std::string& why, Actions& actions) {
  phase_ = Phase::stopping;
  event::StopBegan told{why, {}};
  std::vector<bool> graces(roles_.size());
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    if (process.life != Life::alive) {
      process.life = Life::ended;
      continue;
    }
    process.asked = true;
    graces[process.role] = true;
    told.waiting_for.push_back(i);
    actions.push_back(AskToStop{i});
  }
  for (std::size_t role = 0; role < roles_.size(); ++role) {
    if (graces[role]) actions.push_back(ArmGrace{role});
  }
  if (!told.waiting_for.empty()) actions.push_back(Tell{std::move(told)});
}

void JobState::kill_everything(Actions& actions) {
  phase_ = Phase::killing;
  for (Process& process : processes_) process.killed = true;
  actions.push_back(KillPod{});
}

void JobState::finish_if_ended(Actions& actions) {
  if (!stopping() || !none_alive()) return;
  const bool goes_on = in_world_ && !stop_signal_ && !timed_out_ && !no_more_attempts_ && !job_decided_;
  if (goes_on && (!first_failed_ || failure_)) {
    phase_ = Phase::sweeping;
    actions.push_back(Sweep{});
    return;
  }
  if (!first_failed_ || failure_) return end_job(actions);
  phase_ = Phase::explaining;
  actions.push_back(ExplainFailure{*first_failed_, false});
}

void JobState::end_job(Actions& actions) {
  phase_ = Phase::done;
  actions.push_back(EndJob{});
}

bool JobState::role_ended(std::size_t role) const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [role](const Process& p) { return p.role != role || p.life == Life::ended; });
}

bool JobState::none_alive() const {
  return std::none_of(processes_.begin(), processes_.end(),
                      [](const Process& p) { return p.life == Life::alive; });
}

/// Where every role serves, all of them are the work.
bool JobState::work_is_done() const {
  const bool only_servers = !in_world_ && std::all_of(roles_.begin(), roles_.end(),
                                                      [](const RolePlan& role) { return role.serves; });
  for (std::size_t role = 0; role < roles_.size(); ++role) {
    if ((only_servers || !roles_[role].serves) && !role_ended(role)) return false;
  }
  return true;
}

}  // namespace fleetrun::launcher
