// What a node does about its coordinator's words. A node prepares for a generation once: what is not newer
// than all that it prepared for is ignored. A world is taken only after its prepare,
// the first one of a run excepted.

#include <algorithm>
#include <utility>

#include "launcher/cluster/fence.h"
#include "launcher/cluster/member_state.h"
#include "launcher/cluster/message_text.h"

namespace fleetrun::launcher::joining {
namespace {

void say_again(State& state) {
  const Reports& reports = state.reports;
  if (reports.ready) say(state, *reports.ready);
  if (reports.running) say(state, *reports.running);
  if (reports.failing) say(state, *reports.failing);
  if (reports.failed) say(state, *reports.failed);
  if (reports.done) say(state, *reports.done);
  if (reports.stop) say(state, *reports.stop);
  if (reports.timed_out) say(state, TimeUp{});
}

void on_welcome(State& state, const Welcome& welcome) {
  if (state.greeted_live && !state.live) {  // fenced meanwhile: it has to be told
    state.outputs.emplace_back(HangUp{});
    state.up = false;
    state.dial_at = state.now;
    if (state.stage != Stage::seeking) state.stage = Stage::dialing;
    return;
  }
  if (!state.run.empty() && welcome.run != state.run) {
    if (bound(state)) return not_yet(state);
    state.promised = 0;
    state.known = {};
  }
  state.run = welcome.run;
  state.coordinator_node = welcome.coordinator;
  state.stage = Stage::joined;
  state.heard = state.now;
  if (welcome.lost_after_ms > 0) state.settings.lost_after = std::chrono::milliseconds(welcome.lost_after_ms);
  confirm(state, state.tried);
  state.coordinator = state.target;
  state.here = state.target.here;
  state.failed_dials = state.redirects = 0;
  state.was_closed = state.coordinator_ended = false;
  state.handed_over.reset();  // it may come back, and coordinate again
  if (!welcome.provisional) state.lost_since.reset();
  state.answer_by.reset();
  state.places.clear();
  if (!welcome.resumed) {
    fence(state, "the others go on without this host");
    state.live = state.preparing = false;
    state.pending.reset();  // its list may still come, to look for others by
    const std::optional<Stop> stop = state.reports.stop;
    state.reports = {};
    state.reports.stop = stop;
  }
  say_again(state);
}

void on_prepare(State& state, const Prepare& prepare) {
  if (prepare.generation == state.promised && state.reports.ready &&
      state.reports.ready->generation == prepare.generation)
    return say(state, *state.reports.ready);
  // The one it promised, but had to stop preparing for when it lost touch, it is asked for again.
  const bool again =
      prepare.generation == state.promised && !state.preparing && state.news.generation < prepare.generation;
  if (!again && !may_prepare(prepare.generation, state.promised)) return;
  state.promised = prepare.generation;
  state.known.formed(prepare.base);
  // A proposal takes the place of what the same coordinator proposed before, also one that only stops.
  state.known.given_up(state.coordinator_node);
  state.proposed = prepare.proposed;
  state.parked = false;
  state.pending.reset();
  if (prepare.in_place && state.live) {
    state.known.promised(state.proposed);
    state.reports.ready = Ready{prepare.generation, state.offer};
    return say(state, *state.reports.ready);
  }
  state.reports = {};
  state.preparing = true;
  state.outputs.emplace_back(TellPrepare{prepare.generation, prepare.why});
}

/// A world that lay here for so long, unread, may be over: others may have begun the next one.
bool too_late(const State& state) {
  const auto stands = std::min<std::chrono::milliseconds>(kQuiet - kLeaseMargin, lease_of(state));
  return !state.live && !state.here && state.now - state.confirmed >= stands;
}

/// Who still waits for this host says again what it is to do. No goodbye: it has not gone.
void ask_again(State& state) {
  state.pending.reset();
  state.outputs.emplace_back(HangUp{true});
  state.up = false;
  state.dial_at = state.now;
  state.stage = Stage::dialing;
}

void take_world(State& state, const WorldNews& news, std::shared_ptr<const World> world) {
  if (too_late(state)) return ask_again(state);
  WorldNews told = news;
  told.update = state.live && news.attempt == state.news.attempt;
  const std::optional<Stop> stop = state.reports.stop;
  if (!told.update) state.reports = {};
  state.reports.ready.reset();
  state.reports.stop = stop;
  state.news = told;
  state.world = world;
  state.live = true;
  state.lost_since.reset();
  state.preparing = false;
  state.pending.reset();
  state.outputs.emplace_back(TellWorld{std::move(told), std::move(world)});
}

void on_news(State& state, const WorldNews& news) {
  const bool first = state.promised == 0 && state.news.generation == 0;
  if (news.generation <= state.news.generation || (!first && news.generation != state.promised) ||
      state.preparing)
    return;
  state.promised = std::max(state.promised, news.generation);
  state.parked = false;
  if (state.settings.wants_list) {
    state.pending = news;
  } else {
    take_world(state, news, nullptr);
  }
}

void on_list(State& state, const WorldList& list) {
  state.others = list.world;
  if (!state.pending || list.world->generation != state.pending->generation) return;
  const WorldNews news = *state.pending;
  const auto rank = static_cast<std::size_t>(news.rank);
  if (rank >= list.world->members.size() || list.world->members[rank].node != state.settings.node ||
      list.world->hash() != news.hash) {
    state.pending.reset();
    return tell(state, NewsLevel::warning,
                "the list of epoch " + std::to_string(news.generation) +
                    " does not fit what was said of it: it is not followed");
  }
  state.known.formed(configuration_of(*list.world, list.coordinator));
  state.world_coordinator = list.coordinator;
  state.past = list.past;
  take_world(state, news, list.world);
}

void on_beat(State& state, const Beat& beat) {
  state.heard = state.now;
  state.their_beat = beat.sent;
  state.their_beat_came = state.now;
  confirm(state, beat.echo);
  answer_beat(state);
}

void on_end(State& state, const End& end) {
  say(state, KnowsEnd{});
  if (!end.left) {
    state.outputs.emplace_back(TellLease{});  // no other world follows
    return finish(state, end.end);
  }
  if (std::exchange(state.left, true)) return;
  // What ends here still has a lease, so that nobody who takes the coordinator's place has to wait for it.
  state.end = end.end;
  state.outputs.emplace_back(TellJobOver{end.end});
}

/// The user stopped this host, and what runs here has its grace. Only the coordinator that knows so counts.
void obey_leaving(State& state, const Message& message) {
  const auto* welcome = std::get_if<Welcome>(&message);
  if (welcome && welcome->resumed) {
    state.stage = Stage::joined;
    state.heard = state.now;
    return confirm(state, state.tried);
  }
  if (const auto* its = std::get_if<End>(&message)) return on_end(state, *its);
  const auto* beat = std::get_if<Beat>(&message);
  if (beat && state.stage == Stage::joined) return on_beat(state, *beat);
  if (state.stage == Stage::joined) return;
  if (welcome) say(state, Leave{"its part is over"});
  state.outputs.emplace_back(HangUp{});
  ++state.failed_dials;
  lost_uplink(state);
}

void on_refused(State& state, const Refused& refused) {
  fence(state, refused.text);
  state.outputs.emplace_back(HangUp{});
  state.up = false;
  finish(state, {refused.exit_status,
                 refused.text + (refused.hint.empty() ? "" : "\n  hint: " + refused.hint),
                 state.settings.name,
                 {}});
}

}  // namespace

bool bound(const State& state) noexcept {
  return state.news.generation != 0 || state.others || state.known.newest().generation != 0 ||
         !state.known.proposals().empty();
}

void greet(State& state) {
  Hello hello;
  const MemberSettings& own = state.settings;
  hello.version = own.version;
  hello.job_id = own.job_id;
  hello.node = own.node;
  hello.name = own.name;
  hello.pod = own.pod;
  hello.connection = ++state.connections;
  hello.requested_rank = own.requested_rank;
  hello.nodes = own.nodes;
  hello.program = own.program;
  hello.successor = own.successor;
  hello.offer = state.offer;
  hello.wants_list = own.wants_list;
  if (bound(state)) {
    hello.run = state.run;
    hello.promised = state.promised;
  }
  hello.formed = state.known.newest().generation;
  hello.world = state.news.generation;
  hello.rank = state.news.generation == 0 ? -1 : state.news.rank;
  hello.fenced = state.news.generation != 0 && !state.live;
  state.greeted_live = state.live;
  if (state.stage != Stage::seeking) state.stage = Stage::greeting;
  state.tried = state.now;
  if (state.answer_by) state.answer_by = state.now + own.dial_timeout;
  state.their_beat = {};
  state.next_beat = state.now + own.beat;
  say(state, std::move(hello));
}

void obey(State& state, const Message& message) {
  if (state.left) return obey_leaving(state, message);
  if (std::holds_alternative<NotYet>(message)) return not_yet(state);
  if (const auto* its = std::get_if<Redirect>(&message)) return redirected(state, *its);
  if (const auto* its = std::get_if<Welcome>(&message)) return on_welcome(state, *its);
  if (const auto* its = std::get_if<Refused>(&message)) return on_refused(state, *its);
  if (const auto* its = std::get_if<End>(&message)) return on_end(state, *its);
  if (state.stage != Stage::joined) return;
  state.heard = state.now;
  if (const auto* its = std::get_if<Beat>(&message)) {
    on_beat(state, *its);
  } else if (const auto* its = std::get_if<Prepare>(&message)) {
    on_prepare(state, *its);
  } else if (const auto* its = std::get_if<WorldNews>(&message)) {
    on_news(state, *its);
  } else if (const auto* its = std::get_if<WorldList>(&message)) {
    on_list(state, *its);
  } else if (const auto* its = std::get_if<Waiting>(&message)) {
    tell_waiting(state, its->text);
  } else if (const auto* its = std::get_if<Parked>(&message)) {
    state.parked = true;
    state.lost_since.reset();
    if (state.live) fence(state, its->text);
    tell(state, NewsLevel::info, "this host waits as a spare: " + its->text);
  } else if (std::holds_alternative<AskStanding>(message)) {
    say(state, Standing{state.known.newest(), state.known.proposals()});
  }
}

}  // namespace fleetrun::launcher::joining
