// What launcher/cluster/coordinator_*.cc share: the state of a coordinator, and what each of them does for
// the others. Nothing else includes this.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "launcher/cluster/coordinator_core.h"
#include "launcher/cluster/quarantine.h"
#include "launcher/cluster/quorum.h"
#include "launcher/cluster/ranks.h"
#include "launcher/model/restart_policy.h"

namespace fleetrun::launcher::coordinating {

enum class Stage { gathering, running, changing, settling, resting, waiting, ending, over };

/// A node that is here, or was until a moment ago (`connection` 0) and may come again within the lease.
struct Node {
  std::string node, name, pod;
  Endpoint successor;
  PodOffer offer;
  std::uint64_t program = 0;
  int requested_rank = -1, previous_rank = -1;
  bool wants_list = true;
  std::uint32_t connections = 0;  // the number of its newest one
  ConnectionId connection = 0;
  Instant heard{}, came{};
  Instant last_sent{}, beat_came{};     // its newest beat, in its time and in ours
  Instant confirmed{};                  // it has heard what was said then
  Instant ahead{};                      // our time minus its time, as well as is known
  Instant round_trip = Instant::max();  // of the beat that said so

  std::uint64_t asked = 0;     // the newest generation that it was told to prepare
  std::uint64_t stopped = 0;   // the newest of these for which it was to stop what runs
  std::uint64_t prepared = 0;  // the newest generation that it is ready for
  std::uint64_t told = 0;      // the newest world that it was told of
  std::uint64_t brought = 0;   // the newest world that it knew when it came
  std::uint64_t runs = 0;      // the generation whose processes may be alive there; 0: none
  bool standing_wanted = false;
  bool done = false;
  bool leaving = false;  // was told that its part is over, with
  JobEnd own_end;
  Instant leaves_since{};
  bool parked = false;  // was told so
  bool fenced = false;  // stopped its processes by itself
  bool suspected = false;
  bool knows_end = false;
};

/// A failure of this generation, as its node tells it.
struct Fault {
  std::string node, name, process;
  std::optional<NodeFailure> failure;  // nullopt: only that there is one
  Instant died{};                      // in our time
};

/// The generation that is being prepared.
struct Proposal {
  std::uint64_t generation = 0;  // 0: none
  Instant since{};
  bool viable = false;  // could become a world; else it only stops everybody
  bool in_place = false;
  std::vector<Member> chosen;  // by node rank; their offers are those of the newest ready
  bool publishing = false;
};

struct Gone {
  std::string name;
  Instant since{};
};

struct State {
  State(CoordinatorSettings its, std::optional<Journal> its_journal, Instant its_start);

  CoordinatorSettings settings;
  Stage stage = Stage::gathering;
  bool stepped_down = false;
  Instant started{}, now{};
  Instant next_beat{};
  Instant next_news{};
  std::uint64_t highest = 0;  // generation ever seen
  int attempt = -1;           // of the newest world
  Journal journal;            // with the newest world
  KnownConfigurations known;
  RestartPolicy policy;
  Quarantine quarantine;

  std::vector<std::unique_ptr<Node>> nodes;  // in the order in which they came
  std::unordered_map<std::string, Node*> by_id;
  std::unordered_map<ConnectionId, Node*> by_connection;
  std::vector<Gone> gone;
  std::set<std::string> departed;  // left in good order, and will join nobody else: their votes stay here

  Proposal proposal;
  std::string why;            // of the change that is under way
  bool loss_counted = false;  // in this change
  std::vector<Fault> faults;  // of this generation
  std::optional<Instant> settle_until, rest_until;
  std::optional<Instant> last_arrival;  // since the last world: for the last call
  std::optional<Instant> waiting_since, no_quorum_since;
  std::optional<JobEnd> end;
  Instant ending_since{};
  bool port_retry_used = false;
  Instant world_since{};
  std::uint64_t attempt_generation = 0;  // of the first world of this attempt
  std::size_t done_and_gone = 0;         // members that had done their part before they were lost
  Instant hold_until{};                  // no proposal before, unless everybody is here: a takeover gathers
  Instant lead_until{};                  // by a Discovery
  Instant leases_over{};                 // of members that the coordinator before had heard last
  Instant ghosts_until{};                // what runs on hosts that were given up may live on before
  std::map<std::string, Instant>
      foreign;  // hosts with a node of another run of this job: no first world before
  Instant next_herald{};
  bool growing = false;  // the change that is under way is for newcomers only

  Outputs outputs;  // of the call that is being answered
};

// ---- coordinator_core.cc ----
void send(State& state, const Node& node, SharedMessage message);
/// People on all hosts that are here are told.
void announce(State& state, const std::string& text);
void note(State& state, ClusterEvent event);
void close(State& state, ConnectionId connection);
/// Something came from `node`.
void heard(State& state, Node& node);
/// Whether this coordinator is not held up for want of hosts that know the newest world.
bool may_go_on(const State& state);
/// What others are told of this coordinator.
Acting acting_here(const State& state);
void step_down(State& state, const std::string& why, const std::optional<Redirect>& other);
Node* find(State& state, const std::string& node);

// ---- coordinator_joining.cc: hellos, waiting, the first world ----
void on_hello(State& state, ConnectionId connection, const Hello& hello);
void on_standing(State& state, Node& node, const Standing& standing);
void on_acting(State& state, const Acting& acting);
void gather(State& state);  // forms the first world where it can be
void tell_waiting(State& state);
void park(State& state, Node& node, const std::string& why);
/// Why `node` may not be in a world now; empty: it may.
std::string unfit(const State& state, const Node& node);
std::string waiting_text(const State& state);
/// Of expected hosts that have not come, and of those that came and are gone.
std::vector<std::string> missing_names(const State& state);

// ---- coordinator_changing.cc: proposals and worlds ----
void begin_change(State& state, const std::string& why);
/// Proposes the next generation without forming it yet: everybody stops.
void stop_all(State& state);
/// Of those that know the newest world, enough are here:
/// members of the next one, spares that prepare for it too, or hosts that leave.
bool quorum_here(const State& state);
/// The newest moment such that nodes which have heard what was said here since then are a quorum, this one
/// among them: nobody else coordinates for a lease from then on.
Instant confirmed_by_quorum(const State& state);
/// Whether those that run may go on while the others come and go.
bool goes_on_in_place(const State& state);
/// Proposes, waits, or forms, by what is there now. To be called whenever that has changed.
void regroup(State& state);
void on_ready(State& state, Node& node, const Ready& ready);
void on_published(State& state, bool stored);
void consider_growth(State& state);
/// What `node` has missed while it had no connection.
void tell_again(State& state, Node& node, std::uint64_t world_there);
void form_first(State& state, std::size_t size);

// ---- coordinator_failing.cc: failures and losses ----
void on_failing(State& state, Node& node, const Failing& failing);
void on_failed(State& state, Node& node, const Failed& failed);
void settle(State& state);
/// Whether the job ends when a host is lost: it has a fixed size, and does not restart.
bool ends_at_a_loss(const State& state) noexcept;
/// `why`: "no word from it for 3.0 s".
void lose(State& state, Node& node, const std::string& why, std::chrono::milliseconds after,
          bool orderly = false);
void on_fenced_node(State& state, Node& node);
/// Members of the newest world are lost: decides whether the job goes on.
void lost_members(State& state, const std::string& why, const std::string& name);

// ---- coordinator_ending.cc ----
void on_done(State& state, Node& node, const Done& done);
void on_stop(State& state, Node& node, const Stop& stop);
void end_job(State& state, JobEnd end);
void on_knows_end(State& state, Node& node);
void finish_ending(State& state);
/// Ends the job when all have done their part.
void finish_done(State& state);

}  // namespace fleetrun::launcher::coordinating
