// The entries of a node's side: its uplink, its supervisor's reports, strangers. Dialing and seeking are in
// member_uplink.cc, what the coordinator says in member_obeying.cc.

#include "launcher/cluster/member_core.h"

#include <algorithm>
#include <utility>

#include "launcher/cluster/member_state.h"
#include "launcher/cluster/message_text.h"
#include "launcher/model/signal_map.h"

namespace fleetrun::launcher {
namespace joining {

void tell(State& state, NewsLevel level, const std::string& text) {
  state.outputs.emplace_back(TellNews{level, text});
}

void tell_waiting(State& state, const std::string& text) {
  constexpr int kLong = 3;  // it is said every ten seconds
  tell(state, ++state.waits == kLong ? NewsLevel::warning : NewsLevel::info, text);
}

void say(State& state, Message message) {
  if (state.up) state.outputs.emplace_back(Send{std::move(message)});
}

void fence(State& state, const std::string& why) {
  if (!state.live && !state.preparing) return;
  state.live = state.preparing = false;
  state.pending.reset();
  state.reports = {};
  state.outputs.emplace_back(TellFenced{why});
}

std::chrono::milliseconds lease_of(const State& state) noexcept {
  return state.settings.lost_after - kLeaseMargin;
}

std::chrono::milliseconds silence_of(const State& state) noexcept {
  return state.settings.lost_after > kQuiet ? kQuiet - state.settings.beat : lease_of(state);
}

void confirm(State& state, Instant said) {
  if (said <= state.confirmed) return;
  state.confirmed = said;
  const bool waits = state.settings.lost_after > kQuiet;
  state.outputs.emplace_back(
      TellLease{waits ? said + (kQuiet - kLeaseMargin) : Instant{}, said + lease_of(state)});
}

void finish(State& state, JobEnd end) {
  if (state.stage == Stage::over) return;
  state.stage = Stage::over;
  state.dial_at.reset();
  state.answer_by.reset();
  if (state.left) return;  // its own end was told
  state.end = std::move(end);
  state.outputs.emplace_back(TellJobOver{*state.end});
}

void stop_and_greet_again(State& state, const std::string& why) {
  const bool greeted = state.up;
  fence(state, why);
  if (!greeted) return;
  state.outputs.emplace_back(HangUp{});
  state.up = false;
  if (state.stage != Stage::seeking) state.stage = Stage::dialing;
  state.dial_at = state.now;
}

namespace {

std::string clipped(std::string text, std::size_t max) {
  if (text.size() > max) text.resize(max);
  return text;
}

/// What ran here has ended when its lease is over, whatever this launcher reads first. After a shorter sleep
/// it listens before it judges.
void enter(State& state, Instant now) {
  const Instant slept = now - state.now;
  const bool first = state.now == Instant{};
  state.now = std::max(state.now, now);
  if (first || state.stage == Stage::over) return;
  const std::chrono::milliseconds lease = lease_of(state);
  if (slept >= lease)
    stop_and_greet_again(
        state, "this host slept for " + shown(std::chrono::duration_cast<std::chrono::milliseconds>(slept)));
  else if (state.live && state.now - state.confirmed >= lease)
    stop_and_greet_again(state, "no answer of the coordinator for " + shown(lease));
  if (slept < silence_of(state)) return;
  // What happened meanwhile is not a reason to give up.
  state.started += slept;
  if (state.lost_since) *state.lost_since += slept;
  state.heard = std::max(state.heard, state.now - silence_of(state) / 2);
  state.tried = std::max(state.tried, state.heard);
}

Outputs answered(State& state) {
  return std::exchange(state.outputs, {});
}

}  // namespace
}  // namespace joining

using namespace joining;

MemberCore::MemberCore(MemberSettings settings) : state_(std::make_unique<State>(std::move(settings))) {}

MemberCore::~MemberCore() = default;

Outputs MemberCore::start(Instant now) {
  enter(*state_, now);
  state_->started = now;
  const MemberSettings& settings = state_->settings;
  if (settings.coordinates) {
    dial(*state_, {{}, true, false});
  } else if (settings.coordinator) {
    state_->coordinator = Place{*settings.coordinator};
    dial(*state_, *state_->coordinator);
  }
  return answered(*state_);
}

Outputs MemberCore::on_connected(std::uint64_t uplink, Instant now) {
  if (uplink != state_->uplink || state_->stage == Stage::over) return {};
  enter(*state_, now);
  if (state_->dial_at) return answered(*state_);  // it slept, and dials again
  state_->up = true;
  greet(*state_);
  return answered(*state_);
}

Outputs MemberCore::on_dial_failed(std::uint64_t uplink, const std::string& why, Instant now) {
  if (uplink != state_->uplink || state_->stage == Stage::over) return {};
  enter(*state_, now);
  state_->trouble = why;
  ++state_->failed_dials;
  lost_uplink(*state_);
  return answered(*state_);
}

Outputs MemberCore::on(std::uint64_t uplink, const Message& message, Instant now) {
  if (uplink != state_->uplink || !state_->up || state_->stage == Stage::over) return {};
  enter(*state_, now);
  if (state_->up) obey(*state_, message);
  return answered(*state_);
}

Outputs MemberCore::on_closed(std::uint64_t uplink, Closing how, Instant now) {
  if (uplink != state_->uplink || !state_->up || state_->stage == Stage::over) return {};
  enter(*state_, now);
  if (!state_->up) return answered(*state_);
  state_->up = false;
  state_->was_closed = how == Closing::closed || state_->was_closed;
  state_->coordinator_ended = how == Closing::closed && state_->stage == Stage::joined;
  state_->trouble = how == Closing::closed ? "it closed the connection" : "the connection broke";
  lost_uplink(*state_);
  return answered(*state_);
}

Outputs MemberCore::on_stranger(ConnectionId stranger, const Message& message, Instant now) {
  State& state = *state_;
  enter(state, now);
  const auto* hello = std::get_if<Hello>(&message);
  if (const auto* acting = std::get_if<Acting>(&message)) {
    const bool seeking = state.stage == Stage::seeking || state.stage == Stage::dialing;
    if (seeking && acting->job_id == state.settings.job_id &&
        (state.news.generation == 0 || acting->run == state.run)) {
      state.sent_away = state.now;
      redirected(state, {acting->coordinator, "it coordinates the job"});
    }
  }
  if (!hello) return answered(state);
  const bool ours = hello->job_id == state.settings.job_id && (hello->run.empty() || hello->run == state.run);
  if (ours && state.end && !state.left) {
    state.outputs.emplace_back(Answer{stranger, Message(End{*state.end, false})});
  } else if (ours && state.stage == Stage::joined && !state.here && state.coordinator) {
    state.outputs.emplace_back(
        Answer{stranger, Message(Redirect{state.coordinator->endpoint, "it coordinates the job"})});
  } else {
    state.outputs.emplace_back(Answer{stranger, Message(NotYet{})});
  }
  return answered(state);
}

Outputs MemberCore::on_stepped_down(const std::string& why, Instant now) {
  State& state = *state_;
  if (state.stage == Stage::over) return {};
  enter(state, now);
  state.trouble = why;
  state.sent_away = state.now;
  if (!state.here) return answered(state);
  state.up = false;
  state.here = false;
  state.was_closed = state.stepped_down = true;
  if (state.coordinator && state.coordinator->here) state.coordinator.reset();
  lost_uplink(state);
  return answered(state);
}

Outputs MemberCore::on_tick(Instant now) {
  if (state_->stage == Stage::over) return {};
  enter(*state_, now);
  due(*state_);
  return answered(*state_);
}

Instant MemberCore::next_deadline() const {
  const State& state = *state_;
  if (state.stage == Stage::over || state.stage == Stage::idle) return Instant::max();
  Instant next = Instant::max();
  if (state.up) next = state.next_beat;
  if (state.stage != Stage::seeking && !state.dial_at)
    next = std::min<Instant>(next, std::max(state.heard, state.tried) + silence_of(state));
  if (state.live) next = std::min<Instant>(next, state.confirmed + lease_of(state));
  if (state.stage != Stage::seeking && can_seek(state))
    next = std::min<Instant>(next, state.heard + lease_of(state));
  if (state.dial_at) next = std::min(next, *state.dial_at);
  if (state.answer_by) next = std::min(next, *state.answer_by);
  next = std::min(next, next_word_of_silence(state));
  if (state.lost_since && state.stage != Stage::joined && !state.left)
    next = std::min<Instant>(next, *state.lost_since + longest_search(state));
  if (state.news.generation == 0 && !state.parked && !state.preparing) next = std::min(next, join_by(state));
  return next;
}

Outputs MemberCore::follow(const std::optional<Endpoint>& coordinator, Instant now) {
  if (over()) return {};
  State& state = *state_;
  enter(state, now);
  if (state.stage == Stage::idle) state.started = now;
  const Place place = coordinator ? Place{*coordinator, false} : Place{{}, true};
  const bool same = state.coordinator && state.coordinator->here == place.here &&
                    state.coordinator->endpoint == place.endpoint;
  if (same && (state.stage == Stage::joined || state.stage == Stage::greeting)) return {};
  state.coordinator = place;
  dial(state, place);
  return answered(state);
}

Outputs MemberCore::ready(std::uint64_t generation, const PodOffer& offer, Instant now) {
  if (over() || generation != state_->promised || !state_->preparing) return {};
  enter(*state_, now);
  state_->live = state_->preparing = false;
  state_->offer = offer;
  state_->reports = {};
  state_->reports.ready = Ready{generation, offer};
  state_->known.promised(state_->proposed);
  say(*state_, *state_->reports.ready);
  return answered(*state_);
}

Outputs MemberCore::running(std::uint64_t generation, Instant now) {
  if (over() || !state_->live) return {};
  enter(*state_, now);
  state_->reports.running = Running{generation};
  say(*state_, *state_->reports.running);
  return answered(*state_);
}

Outputs MemberCore::failing(std::uint64_t generation, const std::string& process, Instant now) {
  if (over() || !state_->live) return {};
  enter(*state_, now);
  state_->reports.failing = Failing{generation, clipped(process, 1'024)};
  say(*state_, *state_->reports.failing);
  return answered(*state_);
}

Outputs MemberCore::failed(std::uint64_t generation, const NodeFailure& failure, Instant died, Instant now) {
  if (over() || !(state_->live || state_->preparing)) return {};
  enter(*state_, now);
  Failed failed{generation, failure, died};
  failed.failure.process = clipped(failure.process, 1'024);
  failed.failure.text = clipped(failure.text, 8'192);
  failed.failure.signature = clipped(failure.signature, 8'192);
  failed.failure.screen = clipped(failure.screen, 16'384);
  state_->reports.failed = std::move(failed);
  say(*state_, *state_->reports.failed);
  return answered(*state_);
}

Outputs MemberCore::done(std::uint64_t generation, Instant now) {
  if (over() || !state_->live) return {};
  enter(*state_, now);
  state_->reports.done = Done{generation};
  say(*state_, *state_->reports.done);
  return answered(*state_);
}

Outputs MemberCore::stop(int signal, Instant now) {
  if (over()) return {};
  State& state = *state_;
  enter(state, now);
  state.reports.stop = Stop{signal};
  if (state.stage == Stage::joined) {
    say(state, *state.reports.stop);
  } else {
    // Nobody to ask: this host at least stops.
    finish(state, {status_of_stop(signal),
                   "stopped by its user while no coordinator could be asked",
                   state.settings.name,
                   {}});
  }
  return answered(state);
}

Outputs MemberCore::timed_out(Instant now) {
  if (over()) return {};
  State& state = *state_;
  enter(state, now);
  state.reports.timed_out = true;
  if (state.stage == Stage::joined) {
    say(state, TimeUp{});
  } else {
    finish(state, {124, "the time of the job is up", "", {}});
  }
  return answered(state);
}

Outputs MemberCore::lapsed(Instant now) {
  if (state_->stage == Stage::over || !(state_->live || state_->preparing)) return {};
  enter(*state_, now);
  if (state_->live || state_->preparing)  // enter() may have ended it
    stop_and_greet_again(*state_, "no answer of the coordinator for " + shown(lease_of(*state_)));
  return answered(*state_);
}

Outputs MemberCore::leave(const std::string& why, Instant now) {
  State& state = *state_;
  enter(state, now);
  if (state.up) {
    say(state, state.end ? Message(KnowsEnd{}) : Message(Leave{clipped(why, 1'024)}));
    state.outputs.emplace_back(HangUp{});
  }
  state.up = false;
  state.stage = Stage::over;
  if (!state.end) state.end = JobEnd{0, why, state.settings.name, {}};
  return answered(state);
}

bool MemberCore::over() const noexcept {
  return state_->stage == Stage::over || state_->left;
}

const KnownConfigurations& MemberCore::known() const noexcept {
  return state_->known;
}

bool MemberCore::may_begin() const noexcept {
  return !over() && joining::may_begin(*state_);
}

Instant MemberCore::predecessor_until(Instant now) const noexcept {
  if (state_->coordinator_ended) return now;
  return (state_->heard == Instant{} ? now : state_->heard) + lease_of(*state_);
}

bool MemberCore::left() const noexcept {
  return over() && state_->left;
}

const std::string& MemberCore::node() const noexcept {
  return state_->settings.node;
}

std::shared_ptr<const World> MemberCore::world() const noexcept {
  return state_->world;
}

}  // namespace fleetrun::launcher
