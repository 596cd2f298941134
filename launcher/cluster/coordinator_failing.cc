// When a process fails, and when a node is lost.
//
// A failure stops everybody at once, and is decided about when it is explained: the earliest death of those
// that were told within settle_time is the cause, by our clock. A host that has gone silent meanwhile is
// waited for, since its loss would explain the failures of the others. A lost node is a preemption to the
// restart rules, one for each change.

#include <algorithm>

#include "launcher/cluster/coordinator_state.h"
#include "launcher/cluster/message_text.h"

namespace fleetrun::launcher::coordinating {
namespace {

constexpr int kLostStatus = 75;
constexpr std::size_t kMaxPast = 64;

/// Whether a report about `generation` is about what runs now.
bool is_current(const State& state, std::uint64_t generation) {
  return state.journal.world && generation >= state.attempt_generation &&
         generation <= state.journal.world->generation;
}

void forget(State& state, Node& node) {
  if (node.connection != 0) close(state, node.connection);
  state.by_id.erase(node.node);
  std::erase_if(state.nodes, [&node](const auto& its) { return its.get() == &node; });
}

RestartDecision decide(State& state, const FailureRecord& record, RestartScope scope,
                       const std::string& host) {
  auto& past = state.journal.past;
  past.push_back({record, scope, host});
  if (past.size() > kMaxPast) past.erase(past.begin());
  return state.policy.on_failure(record, scope);
}

void rest(State& state, std::chrono::milliseconds backoff) {
  if (backoff.count() <= 0) {
    state.stage = Stage::changing;
    return;
  }
  state.stage = Stage::resting;
  state.rest_until = state.now + backoff;
}

Fault* fault_of(State& state, const Node& node) {
  for (Fault& fault : state.faults) {
    if (fault.node == node.node) return &fault;
  }
  return nullptr;
}

/// The first failure of a generation: all stop, and prepare for the next one.
bool begins_failure(State& state, const Node& node, const std::string& process) {
  const bool first =
      state.stage == Stage::running || (state.stage == Stage::changing && state.proposal.in_place);
  if (!first) return state.stage == Stage::settling;
  state.why = process + " on " + node.name + " failed";
  state.stage = Stage::settling;
  return true;
}

/// Silent for longer than any that is well.
bool suspect(const State& state, const Node& node) {
  return node.runs != 0 && node.prepared < node.asked && state.now - node.heard > 2 * state.settings.beat;
}

void give_up(State& state, const Fault& fault, const std::string& reason) {
  const NodeFailure& failure = *fault.failure;
  std::string why = failure.process + " on " + fault.name + " " + failure.text;
  if (!reason.empty()) why += "; " + reason;
  end_job(state, {failure.exit_status, why, fault.name, failure});
}

void decide_failure(State& state, Fault fault) {
  state.settle_until.reset();
  const NodeFailure& failure = *fault.failure;
  note(state, NodeFailed{fault.name, failure});
  if (failure.port_clash && !state.port_retry_used && failure.restarts) {
    state.port_retry_used = true;
    note(state, RestartDecided{"a port of " + failure.process + " was in use by another process", {}});
    state.stage = Stage::changing;
    return regroup(state);
  }
  const FailureRecord record{failure.kind, failure.process, failure.signature,
                             std::chrono::milliseconds(failure.ran_ms), failure.progress};
  const RestartScope scope = failure.restarts ? RestartScope::group : RestartScope::nobody;
  const RestartDecision decision = decide(state, record, scope, fault.name);
  if (const auto* given_up = std::get_if<GiveUp>(&decision)) return give_up(state, fault, given_up->why);
  state.quarantine.blame(fault.name, state.now);
  const Restart& restart = std::get<Restart>(decision);
  note(state, RestartDecided{restart.why, restart.backoff});
  rest(state, restart.backoff);
  regroup(state);
}

}  // namespace

void on_failing(State& state, Node& node, const Failing& failing) {
  if (!is_current(state, failing.generation) || !begins_failure(state, node, failing.process)) return;
  if (fault_of(state, node)) return;
  state.faults.push_back({node.node, node.name, failing.process, std::nullopt, state.now});
  if (state.faults.size() == 1) stop_all(state);
  settle(state);
}

void on_failed(State& state, Node& node, const Failed& failed) {
  if (!is_current(state, failed.generation) || !begins_failure(state, node, failed.failure.process)) return;
  Fault* fault = fault_of(state, node);
  const bool first = state.faults.empty();
  if (!fault)
    fault = &state.faults.emplace_back(
        Fault{node.node, node.name, failed.failure.process, std::nullopt, state.now});
  if (fault->failure) return;
  fault->failure = failed.failure;
  const bool clock_known = node.round_trip != Instant::max();
  fault->died = clock_known ? failed.died + node.ahead : state.now;
  if (first) stop_all(state);
  if (!state.settle_until) state.settle_until = state.now + state.settings.settle_time;
  settle(state);
}

void settle(State& state) {
  if (state.stage != Stage::settling) return;
  const bool all_ready = std::all_of(state.nodes.begin(), state.nodes.end(), [&state](const auto& node) {
    return node->asked != state.proposal.generation || node->prepared >= node->asked;
  });
  const bool settled = state.settle_until && state.now >= *state.settle_until;
  if (!all_ready && !settled) return;
  for (const auto& node : state.nodes) {
    if (suspect(state, *node)) return;
  }
  const Fault* first = nullptr;
  for (const Fault& fault : state.faults) {
    if (fault.failure && (!first || fault.died < first->died)) first = &fault;
  }
  if (first) return decide_failure(state, *first);
  if (state.faults.empty()) return;
  Fault unexplained = state.faults.front();
  unexplained.failure.emplace();
  unexplained.failure->process = unexplained.process;
  unexplained.failure->exit_status = 1;
  unexplained.failure->text = "failed, and its host did not say how";
  unexplained.failure->ran_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(state.now - state.world_since).count();
  decide_failure(state, unexplained);
}

bool ends_at_a_loss(const State& state) noexcept {
  return !state.settings.elastic && !state.settings.restarts.any();
}

void lost_members(State& state, const std::string& why, const std::string& name) {
  if (state.stage == Stage::ending || state.stage == Stage::over) return;
  state.quarantine.blame(name, state.now);
  if (ends_at_a_loss(state)) return end_job(state, {kLostStatus, why, name, {}});
  state.why = why;
  const bool stops = state.stage != Stage::running || !goes_on_in_place(state);
  const bool counts =
      stops && state.settings.restarts.any() && !state.loss_counted && state.stage != Stage::resting;
  std::chrono::milliseconds backoff{};
  if (counts) {
    state.loss_counted = true;
    const auto ran = std::chrono::duration_cast<std::chrono::milliseconds>(state.now - state.world_since);
    const RestartDecision decision =
        decide(state, {FailureKind::preemption, name, "lost", ran, {}}, RestartScope::group, name);
    if (const auto* given_up = std::get_if<GiveUp>(&decision))
      return end_job(state, {kLostStatus, why + "; " + given_up->why, name, {}});
    backoff = std::get<Restart>(decision).backoff;
    note(state, RestartDecided{std::get<Restart>(decision).why, backoff});
  }
  // A failure that was being settled is explained by the loss.
  if (state.stage == Stage::running || state.stage == Stage::settling) {
    state.faults.clear();
    state.settle_until.reset();
    if (backoff.count() > 0) stop_all(state);
    rest(state, backoff);
  }
  regroup(state);
}

void lose(State& state, Node& node, const std::string& why, std::chrono::milliseconds after, bool orderly) {
  const std::string name = node.name, id = node.node;
  if (orderly && node.knows_end) state.departed.insert(id);
  // It had a lease until now, which its beats put off.
  if (node.runs != 0)
    state.ghosts_until =
        std::max<Instant>(state.ghosts_until, node.beat_came + state.settings.lost_after - kLeaseMargin);
  const bool member = state.journal.world && node.told == state.journal.world->generation && !node.leaving;
  const bool chosen = state.proposal.generation != 0 && node.asked == state.proposal.generation;
  const bool serves = !node.offer.servers.empty();
  const bool done = node.done;
  if (!node.leaving && !node.knows_end) {
    note(state, NodeLost{name, id, why, after});
    state.gone.push_back({name, state.now - after});
    if (node.connection != 0) send(state, node, Message(Redirect{state.settings.own, why, {}}));
  }
  forget(state, node);
  if (state.stage == Stage::ending) return finish_ending(state);
  if (state.stage == Stage::gathering || state.stage == Stage::over) return;
  if (!member && !chosen) return regroup(state);
  if (!member) return state.stage == Stage::settling ? settle(state) : regroup(state);
  if (state.stage == Stage::running && done && !serves) {
    ++state.done_and_gone;
    return finish_done(state);
  }
  if (state.proposal.publishing) return;  // it is seen when the world is stored
  if (orderly && state.settings.elastic) {
    state.why = name + " left";
    if (state.stage == Stage::running) return begin_change(state, state.why);
    return state.stage == Stage::settling ? settle(state) : regroup(state);
  }
  lost_members(state, name + " was lost: " + why, name);
}

void on_fenced_node(State& state, Node& node) {
  const bool ran = node.runs != 0;
  node.runs = 0;
  node.fenced = true;
  if (ran && state.stage == Stage::running) begin_change(state, node.name + " had lost touch, and stopped");
  if (state.stage == Stage::settling) settle(state);
}

}  // namespace fleetrun::launcher::coordinating
