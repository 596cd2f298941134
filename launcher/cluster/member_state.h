// What launcher/cluster/member_*.cc share: the state of a node. Nothing else includes this.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cluster/member_core.h"
#include "launcher/cluster/quorum.h"

namespace fleetrun::launcher::joining {

enum class Stage { idle, dialing, greeting, joined, seeking, over };

/// Somewhere to look for a coordinator.
struct Place {
  Endpoint endpoint;
  bool here = false;    // it is our turn to coordinate
  bool member = false;  // a member listens there, and will coordinate when it has lost its coordinator too
};

/// What the supervisor said about the newest generation: said again on each new connection,
/// since it may have been lost.
struct Reports {
  std::optional<Ready> ready;
  std::optional<Running> running;
  std::optional<Failing> failing;
  std::optional<Failed> failed;
  std::optional<Done> done;
  std::optional<Stop> stop;
  bool timed_out = false;
};

struct State {
  explicit State(MemberSettings its) : settings(std::move(its)), offer(settings.offer) {}

  MemberSettings settings;
  Stage stage = Stage::idle;
  Instant now{}, started{};

  // The uplink.
  std::uint64_t uplink = 0;
  bool up = false;    // connected
  bool here = false;  // to the coordinator in this launcher
  Place target;       // of the newest dial
  std::uint32_t connections = 0;
  Instant heard{};      // from the coordinator that was joined last
  Instant confirmed{};  // the newest word of ours that is known to have come there
  Instant tried{};      // the newest dial or hello
  Instant next_beat{};
  Instant their_beat{}, their_beat_came{};
  std::optional<Instant> dial_at;       // the next attempt
  std::optional<Instant> answer_by;     // of the one that is under way, while seeking
  int failed_dials = 0;                 // in a row
  bool coordinator_ended = false;       // the launcher of the one that was joined last, and what it ran
  bool was_closed = false;              // the coordinator closed the connection, or its launcher died
  std::optional<Endpoint> handed_over;  // the coordinator that left, and sent this node to its heir
  std::string trouble;                  // the newest, for people
  Instant next_news{};                  // when that may be told again, while nobody has answered

  // What is known.
  std::optional<Place> coordinator;  // that was joined last, or is to be dialed first
  std::string run, coordinator_node;
  std::uint64_t promised = 0;
  KnownConfigurations known;
  WorldNews news;                    // the newest, generation 0: none
  std::optional<WorldNews> pending;  // waits for its list
  std::shared_ptr<const World> world;
  std::shared_ptr<const World> others;  // the newest list: where to look; this node may not be a member
  std::string world_coordinator;
  std::vector<PastFailure> past;
  PodOffer offer;             // the newest
  bool live = false;          // processes of `news` may run here
  bool preparing = false;     // told, and not ready yet
  bool greeted_live = false;  // what the newest hello said of that
  Configuration proposed;     // what for: it can become a world once this node has said ready
  bool parked = false;
  int waits = 0;  // how often people were told that others are waited for
  Reports reports;
  std::optional<JobEnd> end;
  bool left = false;  // `end` is this node's alone

  // Seeking.
  std::vector<Place> places;
  std::size_t next_place = 0;
  int patience = 0;            // how often others may still say "not yet" before it is our turn
  bool asked_in_vain = false;  // one said so since our last turn
  int redirects = 0;
  bool stepped_down = false;          // as coordinator, just now
  Instant sent_away{};                // when the coordinator here last heard that another one leads; 0: never
  std::optional<Instant> lost_since;  // without a coordinator

  Outputs outputs;  // of the call that is being answered
};

// ---- member_core.cc ----
void tell(State& state, NewsLevel level, const std::string& text);
/// That others are waited for: once a warning, when it takes long, since torchrun's logs have nothing below.
void tell_waiting(State& state, const std::string& text);
void say(State& state, Message message);
void fence(State& state, const std::string& why);
/// Fences, and greets again, so that the coordinator hears of it.
void stop_and_greet_again(State& state, const std::string& why);
/// After the coordinator has heard what was said at `said`.
void confirm(State& state, Instant said);
/// How long a coordinator may be silent before another one is looked for, and a word of ours unanswered
/// before what runs here ends.
std::chrono::milliseconds lease_of(const State& state) noexcept;
/// How long an uplink may be silent before there is another one.
std::chrono::milliseconds silence_of(const State& state) noexcept;
void finish(State& state, JobEnd end);

// ---- member_uplink.cc: dialing, seeking ----
/// No run counts on this node yet.
bool may_begin(const State& state) noexcept;
/// Whether this node may look for, and become, another coordinator.
bool can_seek(const State& state) noexcept;
void dial(State& state, const Place& place);
/// The uplink is gone: what next?
void lost_uplink(State& state);
void try_next(State& state);
void redirected(State& state, const Redirect& redirect);
void not_yet(State& state);
/// At once, so that the coordinator knows how far it is heard; by the clock only where it says nothing.
void answer_beat(State& state);
void due(State& state);  // timers
/// How long another coordinator is looked for.
std::chrono::milliseconds longest_search(const State& state) noexcept;
/// When a node that no world has begun for gives up. One
/// that hears a coordinator leaves it the time to say whom it waited for.
Instant join_by(const State& state);

/// When a node that nobody has answered says so again.
Instant next_word_of_silence(const State& state);

// ---- member_obeying.cc: what the coordinator says ----
/// To its run: it was part of a world, stood by as a spare, or said that it is ready for one.
bool bound(const State& state) noexcept;
void greet(State& state);
void obey(State& state, const Message& message);

}  // namespace fleetrun::launcher::joining
