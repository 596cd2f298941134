// The way to a coordinator. Before the first world, and where nodes never coordinate by themselves: the same
// address again and again. A member that could coordinate: at once again where the connection broke, and when
// the coordinator stays away, fenced, to the others in the order of their node ranks,
// and at its own place in that order itself.

#include <algorithm>
#include <utility>

#include "launcher/cluster/member_state.h"
#include "launcher/cluster/message_text.h"

namespace fleetrun::launcher::joining {
namespace {

constexpr int kFailedDials = 3;  // after the coordinator closed the connection: its launcher is gone
constexpr int kRedirects = 3;
constexpr int kLost = 75, kNeverJoined = 125;

/// The last coordinator first, then the members by node rank, this node among them.
std::vector<Place> places_of(const State& state) {
  std::vector<Place> places;
  if (state.settings.coordinator && !state.settings.coordinates)
    places.push_back({*state.settings.coordinator});
  if (state.coordinator && !state.coordinator->here) places.push_back(*state.coordinator);
  for (const Member& member : state.others->members) {
    const bool own = member.node == state.settings.node;
    if (own && !state.world) continue;
    // The coordinator's own launcher has been asked by then.
    if (!own && state.coordinator && !state.coordinator->here && member.node == state.coordinator_node)
      continue;
    if (member.successor.port != 0) places.push_back({own ? Endpoint{} : member.successor, own, !own});
  }
  std::vector<Place> unique;
  for (const Place& place : places) {
    const bool seen = std::any_of(unique.begin(), unique.end(), [&place](const Place& other) {
      return other.here == place.here && other.endpoint == place.endpoint;
    });
    if (!seen && (place.here || place.endpoint != state.settings.successor)) unique.push_back(place);
  }
  return unique;
}

/// How often others may say "not yet" before it is our turn:
/// the lower its rank, the sooner a node coordinates.
int patience_of(const State& state) {
  return 3 + 4 * std::clamp(state.news.rank, 0, 10);
}

void seek(State& state) {
  if (!state.lost_since) state.lost_since = state.now;
  state.up = false;
  state.stage = Stage::seeking;
  state.places = places_of(state);
  state.next_place = 0;
  state.patience = patience_of(state);
  state.asked_in_vain = false;
  state.redirects = 0;
  state.dial_at = state.now;
}

void begin_seeking(State& state) {
  fence(state,
        "no word from the coordinator of the job" + (state.trouble.empty() ? "" : ": " + state.trouble));
  if (state.stage == Stage::seeking) return;
  tell(state, NewsLevel::warning, "the coordinator of the job is lost; looking for the others");
  seek(state);
  // One that has just tried in vain to coordinate looks for the others first.
  const auto own =
      std::find_if(state.places.begin(), state.places.end(), [](const Place& place) { return place.here; });
  if (std::exchange(state.stepped_down, false) && own != state.places.end())
    std::rotate(state.places.begin(), own + 1, state.places.end());
}

/// The coordinator leaves in good order, and the others are sent here.
void succeed(State& state) {
  seek(state);
  std::erase_if(state.places, [](const Place& place) { return place.here; });
  state.places.insert(state.places.begin(), Place{{}, true});
}

Journal journal_of(const State& state) {
  Journal journal;
  journal.job_id = state.settings.job_id;
  journal.run = state.run;
  journal.generation = std::max(state.promised, state.news.generation);
  journal.world = state.world ? state.world : state.others;  // of a spare that is to coordinate
  journal.coordinator = state.world_coordinator;
  journal.past = state.past;
  journal.formed = state.known.newest();
  journal.promised = state.known.proposals();
  return journal;
}

/// `lost`: the coordinator that it was a member or a spare of.
void give_up(State& state, bool lost) {
  const auto waited = lost ? longest_search(state) : state.settings.join_timeout;
  std::string why = lost ? "no coordinator of the job was found for " + shown(waited)
                         : "the job did not begin within " + shown(waited);
  if (!state.trouble.empty()) why += ": " + state.trouble;
  if (lost && can_seek(state) && state.others->members.size() > 1)
    why += " (of " + std::to_string(state.others->members.size()) +
           " hosts more than half have to be left to replace it; with etcd fewer may be)";
  fence(state, why);
  if (state.up) {
    say(state, Leave{why});
    state.outputs.emplace_back(HangUp{});
    state.up = false;
  }
  finish(state, {lost ? kLost : kNeverJoined, why, state.settings.name, {}});
}

/// The coordinator here gave way to one that leads no more: nobody has heard of it for as long as a
/// coordinator waits for those who say that they belong to another run.
bool begins_again(const State& state) {
  return state.settings.coordinates && state.sent_away != Instant{} && may_begin(state) &&
         state.now - state.sent_away >= 4 * std::min(state.settings.lost_after, kQuiet);
}

void begin_again(State& state) {
  state.sent_away = {};
  state.failed_dials = 0;
  state.coordinator.reset();
  tell(state, NewsLevel::info, "the host that coordinated the job is gone; the job begins here");
  state.outputs.emplace_back(Coordinate{});
  dial(state, {{}, true, false});
}

}  // namespace

bool may_begin(const State& state) noexcept {
  return state.promised == 0 && !bound(state);
}

bool can_seek(const State& state) noexcept {
  return state.settings.takeover && state.others != nullptr && !state.left;
}

void dial(State& state, const Place& place) {
  state.target = place;
  state.up = false;
  state.here = false;
  state.tried = state.now;
  state.dial_at.reset();
  state.answer_by.reset();
  if (state.stage != Stage::seeking) state.stage = Stage::dialing;
  if (state.stage == Stage::seeking && !place.here) state.answer_by = state.now + state.settings.dial_timeout;
  state.outputs.emplace_back(Dial{++state.uplink, place.endpoint, place.here});
}

void lost_uplink(State& state) {
  state.up = false;
  state.here = false;
  if (state.stage == Stage::seeking) return try_next(state);
  if (!state.coordinator && can_seek(state)) return begin_seeking(state);
  state.stage = Stage::dialing;
  if ((state.news.generation != 0 || state.parked) && !state.lost_since) state.lost_since = state.now;
  // Where it was sent nobody is any more: the first address may know better by now.
  const bool sent_on = state.settings.coordinator && !state.settings.coordinates && state.coordinator &&
                       state.coordinator->endpoint != *state.settings.coordinator;
  if (sent_on && !can_seek(state) && state.failed_dials >= kFailedDials) {
    state.coordinator = Place{*state.settings.coordinator};
    state.failed_dials = 1;
  }
  if (begins_again(state)) return begin_again(state);
  const bool gone = state.was_closed && state.failed_dials >= kFailedDials;
  if (gone && can_seek(state)) return begin_seeking(state);
  state.dial_at = state.failed_dials == 0 ? state.now : state.now + state.settings.redial;
}

void try_next(State& state) {
  state.answer_by.reset();
  if (state.next_place >= state.places.size()) {
    state.places = places_of(state);
    state.next_place = 0;
    state.redirects = 0;
    state.dial_at = state.now + state.settings.redial;
    return;
  }
  state.dial_at.reset();
  const Place place = state.places[state.next_place++];
  if (!place.here) return dial(state, place);
  // Who also waits may take the lead sooner, or hear of another who has.
  if (state.asked_in_vain && state.patience > 0) return try_next(state);
  state.asked_in_vain = false;
  state.patience = patience_of(state);
  tell(state, NewsLevel::info, "coordinating the job from here, if enough of the others come");
  state.outputs.emplace_back(Coordinate{journal_of(state)});
  dial(state, place);
}

void redirected(State& state, const Redirect& redirect) {
  // By one that has not heard yet that this coordinator hands over.
  if (redirect.heirs.generation == 0 && state.handed_over == redirect.coordinator) return not_yet(state);
  if (redirect.heirs.generation != 0 && state.coordinator && !state.coordinator->here)
    state.handed_over = state.coordinator->endpoint;
  state.known.formed(redirect.heirs);
  state.outputs.emplace_back(HangUp{});
  state.up = false;
  fence(state, redirect.why);
  state.trouble = redirect.why;
  const bool known =
      state.coordinator && !state.coordinator->here && state.coordinator->endpoint == redirect.coordinator;
  const bool own = redirect.coordinator == state.settings.successor || redirect.coordinator.port == 0;
  if (state.stage != Stage::seeking) {
    if (own && redirect.heirs.generation != 0 && can_seek(state)) return succeed(state);
    if (!own) state.coordinator = Place{redirect.coordinator};
    if (known || own) return lost_uplink(state);
    return dial(state, *state.coordinator);
  }
  if (own || ++state.redirects > kRedirects) return try_next(state);
  dial(state, {redirect.coordinator});
}

void not_yet(State& state) {
  if (state.stage == Stage::joined) state.known.given_up(state.coordinator_node);  // it steps down
  state.outputs.emplace_back(HangUp{});
  state.up = false;
  if (state.stage != Stage::seeking) {
    ++state.failed_dials;
    state.was_closed = true;
    return lost_uplink(state);
  }
  if (!state.target.member) return try_next(state);
  state.asked_in_vain = true;
  --state.patience;
  state.answer_by.reset();
  state.dial_at = state.now + state.settings.redial;
}

Instant join_by(const State& state) {
  const MemberSettings& own = state.settings;
  return state.started + own.join_timeout + (state.up ? silence_of(state) : std::chrono::milliseconds{});
}

std::chrono::milliseconds longest_search(const State& state) noexcept {
  return std::max(state.settings.elastic_timeout, state.settings.lost_after);
}

namespace {

/// A wrong address must not look like a wait for hosts.
void tell_silence(State& state) {
  constexpr std::chrono::seconds kEvery{10};
  if (state.now < next_word_of_silence(state)) return;
  state.next_news = state.now + kEvery;
  const std::string where = to_string(state.target.endpoint);
  const std::string why = state.trouble.empty() ? "no answer" : state.trouble;
  tell_waiting(
      state, "no host of this job has answered yet: " + (why.starts_with(where) ? why : where + ": " + why));
}

/// The uplink is silent, or there has been none for too long.
void check_silence(State& state) {
  const std::chrono::milliseconds patience = silence_of(state);
  const bool silent = !state.dial_at && state.now - std::max(state.heard, state.tried) >= patience;
  const bool given_up = can_seek(state) && state.now - state.heard >= lease_of(state);
  if (silent) {
    state.trouble = "no word for " + shown(patience);
    state.outputs.emplace_back(HangUp{state.live});
    ++state.failed_dials;
    if (state.stage != Stage::joined || !given_up) lost_uplink(state);
  }
  if (state.stage != Stage::seeking && given_up) begin_seeking(state);
}

}  // namespace

Instant next_word_of_silence(const State& state) {
  constexpr std::chrono::seconds kFirst{3};
  const bool answered = !state.coordinator_node.empty() || state.news.generation != 0 || state.parked;
  const bool looks = state.stage == Stage::dialing || state.stage == Stage::greeting;
  if (answered || !looks || state.target.here) return Instant::max();
  return std::max<Instant>(state.started + kFirst, state.next_news);
}

void answer_beat(State& state) {
  const bool heard_beat = state.their_beat != Instant{};
  state.next_beat = state.now + 3 * state.settings.beat / 2;
  say(state, Beat{state.now, state.their_beat, heard_beat ? state.now - state.their_beat_came : Instant{}});
}

void due(State& state) {
  const MemberSettings& own = state.settings;
  const bool member = state.news.generation != 0;
  if (!member && !state.parked && !state.preparing && state.now >= join_by(state))
    return give_up(state, false);
  // A coordinator that gathers nodes gives up by itself.
  const bool searching = state.lost_since && state.stage != Stage::joined && !state.left;
  if (searching && state.now - *state.lost_since >= longest_search(state)) return give_up(state, true);
  if (state.up && state.now >= state.next_beat) {
    answer_beat(state);
    state.next_beat = state.now + own.beat;
  }
  if (state.stage == Stage::idle) return;
  tell_silence(state);
  if (state.stage != Stage::seeking) check_silence(state);
  if (state.answer_by && state.now >= *state.answer_by) {
    state.outputs.emplace_back(HangUp{});
    state.up = false;
    return try_next(state);
  }
  if (!state.dial_at || state.now < *state.dial_at) return;
  if (state.stage == Stage::seeking) return try_next(state);
  dial(state, state.coordinator ? *state.coordinator : state.target);
}

}  // namespace fleetrun::launcher::joining
