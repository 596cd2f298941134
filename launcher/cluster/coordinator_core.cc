// The entries of a coordinator: who may speak, when what is due. What is done about it is in
// coordinator_joining.cc, _changing.cc, _failing.cc and _ending.cc.

#include "launcher/cluster/coordinator_core.h"

#include <algorithm>
#include <utility>

#include "launcher/cluster/coordinator_state.h"
#include "launcher/cluster/message_text.h"
#include "launcher/model/signal_map.h"

namespace fleetrun::launcher {
namespace coordinating {

State::State(CoordinatorSettings its, std::optional<Journal> its_journal, Instant its_start)
    : settings(std::move(its)),
      started(its_start),
      now(its_start),
      next_beat(its_start + settings.beat),
      next_news(its_start + std::min<Instant>(std::chrono::seconds(3), settings.news_every)),
      policy(settings.restarts, settings.seed),
      quarantine(
          {settings.max_blames, settings.blame_window, settings.quarantine, settings.longest_quarantine}) {
  journal.job_id = settings.job_id;
  journal.run = settings.run;
  if (!its_journal) return;
  journal = std::move(*its_journal);
  highest = journal.generation;
  known.formed(journal.formed);
  if (journal.world) known.formed(configuration_of(*journal.world, journal.coordinator));
  for (const Configuration& proposal : journal.promised) known.promised(proposal);
  for (const PastFailure& past : journal.past) policy.on_failure(past.record, past.scope);
  attempt = known.newest().attempt;
  highest = std::max(highest, known.newest().generation);
  if (known.newest().generation == 0) {
    attempt = -1;
    return;
  }
  stage = Stage::waiting;
  why = "another host coordinates the job";
  hold_until = now + settings.gather_time / 2;
  leases_over = now + std::min(settings.lost_after, kQuiet) - kLeaseMargin;
}

void send(State& state, const Node& node, SharedMessage message) {
  if (node.connection != 0) state.outputs.emplace_back(SendTo{{node.connection}, std::move(message)});
}

void announce(State& state, const std::string& text) {
  note(state, WaitingForNodes{text});
  std::vector<ConnectionId> all;
  for (const auto& node : state.nodes) {
    if (node->connection != 0) all.push_back(node->connection);
  }
  if (!all.empty()) state.outputs.emplace_back(SendTo{std::move(all), Message(Waiting{text})});
}

void note(State& state, ClusterEvent event) {
  state.outputs.emplace_back(Note{std::move(event)});
}

void close(State& state, ConnectionId connection) {
  state.by_connection.erase(connection);
  state.outputs.emplace_back(CloseConnection{connection});
}

Node* find(State& state, const std::string& node) {
  const auto found = state.by_id.find(node);
  return found == state.by_id.end() ? nullptr : found->second;
}

bool may_go_on(const State& state) {
  const bool waits = state.stage == Stage::waiting && (!quorum_here(state) || state.now < state.hold_until);
  return !waits && state.stage != Stage::ending && state.stage != Stage::over;
}

Acting acting_here(const State& state) {
  return {state.settings.job_id, state.journal.run, state.known.newest().generation, state.settings.own};
}

void step_down(State& state, const std::string& why, const std::optional<Redirect>& other) {
  const SharedMessage farewell = other ? Message(*other) : Message(NotYet{});
  for (const auto& node : state.nodes) {
    if (node->connection == 0) continue;
    send(state, *node, farewell);
    state.outputs.emplace_back(CloseConnection{node->connection});
  }
  state.by_connection.clear();
  state.stage = Stage::over;
  state.stepped_down = true;
  state.outputs.emplace_back(StepDown{why});
}

void heard(State& state, Node& node) {
  const Instant silent = state.now - node.heard;
  node.heard = state.now;
  if (!std::exchange(node.suspected, false)) return;
  announce(state, node.name + " is back after " +
                      shown(std::chrono::duration_cast<std::chrono::milliseconds>(silent)));
}

namespace {

/// Where this launcher itself slept, the silence of the others says nothing.
void enter(State& state, Instant now) {
  const Instant slept = now - state.now;
  state.now = std::max(state.now, now);
  if (slept < state.settings.lost_after / 2) return;
  for (const auto& node : state.nodes) node->heard += slept;
}

void on_beat(State& state, Node& node, const Beat& beat) {
  node.last_sent = beat.sent;
  node.beat_came = state.now;
  if (beat.echo == Instant{}) return;
  node.confirmed = std::max(node.confirmed, beat.echo);
  const Instant round_trip = state.now - beat.echo - beat.held;
  if (round_trip < Instant{} || round_trip > node.round_trip) return;
  node.round_trip = round_trip;
  node.ahead = state.now - round_trip / 2 - beat.sent;
}

/// All other members of the newest world have heard what was said then; 0: there are none, or one is away.
Instant confirmed_by_others(State& state) {
  Instant moment = Instant::max();
  for (const Member& member : state.journal.world->members) {
    if (member.node == state.settings.node) continue;
    const Node* node = find(state, member.node);
    moment = std::min(moment, node ? node->confirmed : Instant{});
  }
  return moment == Instant::max() ? Instant{} : moment;
}

/// What runs beside this coordinator may not outlive its coordinating. A Discovery that answers nobody elects
/// nobody: then the members know whether somebody else leads.
Instant coordinates_since(State& state) {
  if (!state.journal.world) return state.now;
  if (state.settings.takeover) return confirmed_by_quorum(state);
  if (!state.settings.durable) return state.now;
  const auto stands = std::min(state.settings.lost_after, kQuiet) - kLeaseMargin;
  return std::max<Instant>(state.lead_until - stands, confirmed_by_others(state));
}

void send_beats(State& state) {
  for (const auto& node : state.nodes) {
    Instant echo = node->last_sent;
    if (node->node == state.settings.node) echo = std::min(echo, coordinates_since(state));
    send(state, *node,
         Message(Beat{state.now, echo, echo == Instant{} ? Instant{} : state.now - node->beat_came}));
  }
}

/// How long a node may be silent. Where nothing runs there, or nothing can be saved any more, waiting helps
/// nobody; else what runs there ends by itself shortly before.
std::chrono::milliseconds patience_with(const State& state, const Node& node) {
  const bool in_vain = state.stage == Stage::settling && ends_at_a_loss(state);
  return node.runs != 0 && !in_vain ? state.settings.lost_after : std::min(state.settings.lost_after, kQuiet);
}

std::chrono::milliseconds silence_of(const State& state, const Node& node) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(state.now - node.heard);
}

/// People are told of a host that the job waits for.
void suspect_silent(State& state) {
  if (state.settings.lost_after <= kQuiet) return;
  for (const auto& node : state.nodes) {
    if (node->suspected || node->runs == 0 || node->leaving || silence_of(state, *node) < kQuiet) continue;
    node->suspected = true;
    announce(state, "no word from " + node->name + " for " + shown(kQuiet) + ": the job waits up to " +
                        shown(state.settings.lost_after) + " for it (--lost_after)");
  }
}

void lose_silent(State& state) {
  const Instant preparing = state.settings.prepare_timeout;
  std::vector<std::pair<Node*, std::string>> lost;
  for (const auto& node : state.nodes) {
    if (const auto patience = patience_with(state, *node); state.now - node->heard >= patience) {
      lost.emplace_back(node.get(), "no word from it for " + shown(patience));
      continue;
    }
    const bool prepares = state.proposal.generation != 0 && node->asked == state.proposal.generation &&
                          node->prepared < node->asked;
    const bool ends = node->leaving && node->runs != 0;
    if ((prepares && state.now - state.proposal.since >= preparing) ||
        (ends && state.now - node->leaves_since >= preparing)) {
      lost.emplace_back(node.get(),
                        "its processes did not end within " + shown(state.settings.prepare_timeout));
    }
  }
  for (const auto& [node, why] : lost) {
    if (state.stage == Stage::over) return;
    lose(state, *node, why, silence_of(state, *node));
  }
}

void herald(State& state) {
  if (!state.settings.heralded || !may_go_on(state) || state.now < state.next_herald) return;
  state.next_herald = state.now + std::chrono::seconds(1);
  state.outputs.emplace_back(TellOnce{*state.settings.heralded, Message(acting_here(state))});
}

/// What is due in this stage.
void advance(State& state) {
  switch (state.stage) {
    case Stage::gathering:
      return gather(state);
    case Stage::running:
      return consider_growth(state);
    case Stage::changing:
    case Stage::waiting:
      return regroup(state);
    case Stage::settling:
      return settle(state);
    case Stage::resting:
      if (state.rest_until && state.now < *state.rest_until) return;
      state.rest_until.reset();
      state.stage = Stage::changing;
      return regroup(state);
    case Stage::ending:
      return finish_ending(state);
    case Stage::over:
      return;
  }
}

void on_message(State& state, ConnectionId connection, const Message& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) return on_hello(state, connection, *hello);
  if (const auto* acting = std::get_if<Acting>(&message)) {
    state.outputs.emplace_back(CloseConnection{connection});
    return on_acting(state, *acting);
  }
  const auto found = state.by_connection.find(connection);
  if (found == state.by_connection.end()) {
    state.outputs.emplace_back(CloseConnection{connection});
    return;
  }
  Node& node = *found->second;
  heard(state, node);
  if (const auto* beat = std::get_if<Beat>(&message)) return on_beat(state, node, *beat);
  if (const auto* its = std::get_if<Ready>(&message)) return on_ready(state, node, *its);
  if (const auto* its = std::get_if<Failing>(&message)) return on_failing(state, node, *its);
  if (const auto* its = std::get_if<Failed>(&message)) return on_failed(state, node, *its);
  if (const auto* its = std::get_if<Done>(&message)) return on_done(state, node, *its);
  if (const auto* its = std::get_if<Stop>(&message)) return on_stop(state, node, *its);
  if (const auto* its = std::get_if<Standing>(&message)) return on_standing(state, node, *its);
  if (const auto* its = std::get_if<Leave>(&message)) {
    state.departed.insert(node.node);
    node.runs = 0;
    return lose(state, node, "it left: " + its->why, {}, true);
  }
  if (std::holds_alternative<TimeUp>(message))
    return end_job(state, {124, "the time of the job is up", "", {}});
  if (std::holds_alternative<KnowsEnd>(message)) return on_knows_end(state, node);
  if (const auto* its = std::get_if<AskList>(&message)) {
    if (state.journal.world && its->generation == state.journal.world->generation)
      send(state, node,
           Message(WorldList{state.journal.world, state.journal.coordinator, state.journal.past}));
  }
}

}  // namespace
}  // namespace coordinating

using namespace coordinating;

CoordinatorCore::CoordinatorCore(CoordinatorSettings settings, std::optional<Journal> journal, Instant now)
    : state_(std::make_unique<State>(std::move(settings), std::move(journal), now)) {}

CoordinatorCore::~CoordinatorCore() = default;

Outputs CoordinatorCore::on(ConnectionId connection, const Message& message, Instant now) {
  if (over()) return {};
  enter(*state_, now);
  on_message(*state_, connection, message);
  return std::exchange(state_->outputs, {});
}

Outputs CoordinatorCore::on_closed(ConnectionId connection, Closing how, Instant now) {
  if (over()) return {};
  enter(*state_, now);
  const auto found = state_->by_connection.find(connection);
  if (found == state_->by_connection.end()) return {};
  Node& node = *found->second;
  state_->by_connection.erase(found);
  node.connection = 0;
  // Where the connection of a leaving node breaks before its last word, its processes may still run.
  const bool may_run = node.leaving && node.runs != 0 && how == Closing::broken;
  if (may_run) return std::exchange(state_->outputs, {});
  if (how == Closing::closed) node.runs = 0;  // it ends with its launcher
  if (node.knows_end || node.leaving) {
    lose(*state_, node, "its part is over", {}, true);
  } else if (how == Closing::closed) {
    lose(*state_, node, "its launcher is gone", {});
  }
  return std::exchange(state_->outputs, {});
}

Outputs CoordinatorCore::on_tick(Instant now) {
  if (over()) return {};
  State& state = *state_;
  enter(state, now);
  if (state.now >= state.next_beat) {
    state.next_beat = state.now + state.settings.beat;
    send_beats(state);
    herald(state);
  }
  suspect_silent(state);
  lose_silent(state);
  advance(state);
  tell_waiting(state);
  return std::exchange(state.outputs, {});
}

Instant CoordinatorCore::next_deadline() const {
  const State& state = *state_;
  if (over()) return Instant::max();
  Instant next = state.next_beat;
  if (state.settle_until && *state.settle_until > state.now) next = std::min(next, *state.settle_until);
  if (state.rest_until && *state.rest_until > state.now) next = std::min(next, *state.rest_until);
  if (state.hold_until != Instant{} && state.settings.predecessor_until > state.now)
    next = std::min(next, state.settings.predecessor_until);
  if (state.ghosts_until > state.now) next = std::min(next, state.ghosts_until);
  if (state.stage == Stage::ending)
    next = std::min<Instant>(next, state.ending_since + state.settings.end_timeout);
  return next;
}

Outputs CoordinatorCore::on_published(bool stored, Instant now) {
  if (over()) return {};
  enter(*state_, now);
  coordinating::on_published(*state_, stored);
  return std::exchange(state_->outputs, {});
}

void CoordinatorCore::leads_until(Instant when) noexcept {
  state_->lead_until = when;
}

Outputs CoordinatorCore::stop(int signal, Instant now) {
  if (over()) return {};
  enter(*state_, now);
  const char* why =
      signal == kDrained ? "it was drained, and asks to be started again" : "it was stopped by its user";
  end_job(*state_, {status_of_stop(signal), why, "", {}});
  return std::exchange(state_->outputs, {});
}

Outputs CoordinatorCore::end(const JobEnd& end, Instant now) {
  if (over()) return {};
  enter(*state_, now);
  end_job(*state_, end);
  return std::exchange(state_->outputs, {});
}

Outputs CoordinatorCore::depose(const std::string& why, Instant now) {
  if (over()) return {};
  enter(*state_, now);
  step_down(*state_, why, std::nullopt);
  return std::exchange(state_->outputs, {});
}

bool CoordinatorCore::over() const noexcept {
  return state_->stage == Stage::over;
}

std::vector<std::string> CoordinatorCore::missing() const {
  return missing_names(*state_);
}

std::shared_ptr<const World> CoordinatorCore::world() const noexcept {
  return state_->journal.world;
}

const Journal& CoordinatorCore::journal() const noexcept {
  return state_->journal;
}

}  // namespace fleetrun::launcher
