// From one world to the next. A proposal has a generation of its own and a fixed set of members; when the
// set has to be another one, there is another proposal. All who may run processes and all who are chosen
// prepare for it; when all are ready it becomes a world, given a quorum.
//
// In place (parameter-server jobs that lose no server, or whose standbys take over those of a lost host):
// those that run say ready at once and go on; newcomers prepare as ever.

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "launcher/cluster/coordinator_state.h"
#include "launcher/cluster/message_text.h"

namespace fleetrun::launcher::coordinating {
namespace {

std::vector<std::string> ids_of(const std::vector<Member>& members) {
  std::vector<std::string> ids;
  ids.reserve(members.size());
  for (const Member& member : members) ids.push_back(member.node);
  return ids;
}

bool has(const std::vector<Member>& members, const std::string& node) {
  return std::any_of(members.begin(), members.end(),
                     [&node](const Member& member) { return member.node == node; });
}

Candidate candidate_of(const Node& node) {
  return {{node.node, node.name, node.pod, node.successor, node.offer, 0, 0},
          node.previous_rank,
          node.requested_rank};
}

/// All that can take part; hosts in quarantine only where the others are too few.
std::vector<Candidate> candidates_of(const State& state) {
  std::vector<Candidate> free, resting;
  for (const auto& node : state.nodes) {
    if (node->leaving) continue;
    const bool rests = state.quarantine.until(node->name) > state.now;
    (rests ? resting : free).push_back(candidate_of(*node));
  }
  if (world_size(state.settings.nodes, free.size()) == 0)
    free.insert(free.end(), resting.begin(), resting.end());
  return free;
}

std::vector<Candidate> candidates_of(const std::vector<Member>& members) {
  std::vector<Candidate> candidates;
  for (const Member& member : members) candidates.push_back({member, -1, -1});
  return candidates;
}

/// It left, or does so now, and knows it: no other coordinator will ever have its vote.
bool votes_here_for_good(const State& state, const std::string& node) {
  const auto found = state.by_id.find(node);
  if (found == state.by_id.end()) return state.departed.count(node) > 0;
  return found->second->leaving && (node == state.settings.node || found->second->knows_end);
}

/// Its own host leaves, and another may take this coordinator's place: it goes when nothing runs any more.
bool leaves_itself(const State& state) {
  const auto own = state.by_id.find(state.settings.node);
  const bool leaving = own != state.by_id.end() && own->second->leaving;
  return state.settings.takeover && (leaving || state.departed.count(state.settings.node) > 0);
}

}  // namespace

bool quorum_here(const State& state) {
  if (!state.settings.takeover) return true;
  return state.known.quorum([&state](const std::string& node) {
    const auto found = state.by_id.find(node);
    const bool stays = found != state.by_id.end() && !found->second->leaving;
    return stays || votes_here_for_good(state, node);
  });
}

Instant confirmed_by_quorum(const State& state) {
  std::vector<Instant> moments = {state.now};  // this one may be a quorum by itself
  for (const auto& node : state.nodes) moments.push_back(node->confirmed);
  std::sort(moments.begin(), moments.end(), std::greater<>());
  const auto since = std::partition_point(moments.begin(), moments.end(), [&state](Instant moment) {
    return !state.known.quorum([&state, moment](const std::string& id) {
      const auto found = state.by_id.find(id);
      return id == state.settings.node || votes_here_for_good(state, id) ||
             (found != state.by_id.end() && found->second->confirmed >= moment);
    });
  });
  return since == moments.end() ? Instant{} : *since;
}

namespace {

/// Those of `candidates` who have a part in a world that goes on in place: a host of servers alone that comes
/// later has none, see arrange_in_place().
std::vector<Candidate> candidates_in_place(const State& state, std::vector<Candidate> candidates) {
  std::erase_if(candidates, [&state](const Candidate& its) {
    return state.journal.world && !state.journal.world->rank_of(its.member.node) &&
           its.member.offer.trainers.empty();
  });
  return candidates;
}

/// Whether those who run may go on while the others come and go.
bool goes_on_in_place(const State& state, const std::vector<Candidate>& candidates, std::size_t size) {
  if (!state.settings.in_place || !state.journal.world || !state.faults.empty() || leaves_itself(state))
    return false;
  const std::uint64_t generation = state.journal.world->generation;
  std::size_t survivors = 0;
  for (const Member& member : state.journal.world->members) {
    const bool here = std::any_of(candidates.begin(), candidates.end(),
                                  [&member](const Candidate& its) { return its.member.node == member.node; });
    survivors += here ? 1 : 0;
  }
  if (survivors > size || !take_over_servers(*state.journal.world, candidates)) return false;
  bool anybody_runs = false;
  for (const auto& node : state.nodes) {
    const bool member = state.journal.world->rank_of(node->node).has_value();
    anybody_runs |= member && node->runs != 0;
    const bool stays = node->runs != 0 && node->told == generation && node->stopped <= generation;
    if (member && !node->leaving && !stays) return false;
  }
  return anybody_runs;
}

void propose(State& state, std::vector<Member> chosen, bool viable, bool in_place) {
  Proposal& proposal = state.proposal;
  proposal = {++state.highest, state.now, viable, in_place, std::move(chosen), false};
  Prepare prepare;
  prepare.generation = proposal.generation;
  prepare.why = state.why;
  if (state.settings.takeover) {
    prepare.base = state.known.newest();
    state.known.given_up(state.settings.node);
    if (viable) {
      prepare.proposed = {proposal.generation, state.attempt + (in_place ? 0 : 1), state.settings.node,
                          ids_of(proposal.chosen)};
      state.known.promised(prepare.proposed);
    }
  }
  std::vector<ConnectionId> stop, go_on;
  for (const auto& node : state.nodes) {
    const bool chosen_one = viable && has(proposal.chosen, node->node);
    const bool votes = viable && state.settings.takeover && state.known.concerns(node->node);
    if (node->leaving || (!chosen_one && !votes && node->runs == 0)) continue;
    node->asked = proposal.generation;
    node->parked = false;
    if (!in_place || !chosen_one || node->runs == 0) node->stopped = proposal.generation;
    if (node->connection == 0) continue;
    (in_place && chosen_one && node->runs != 0 ? go_on : stop).push_back(node->connection);
  }
  note(state, ChangeBegun{proposal.generation, state.why});
  if (!stop.empty()) state.outputs.emplace_back(SendTo{std::move(stop), Message(prepare)});
  prepare.in_place = true;
  if (!go_on.empty()) state.outputs.emplace_back(SendTo{std::move(go_on), Message(std::move(prepare))});
}

/// Nobody may run anything else any more when a world begins.
bool all_ready(const State& state) {
  if (state.now < state.ghosts_until) return false;
  const Proposal& proposal = state.proposal;
  for (const auto& node : state.nodes) {
    if (node->leaving && node->runs != 0) return false;
    if (node->asked == proposal.generation && (node->prepared < proposal.generation || node->connection == 0))
      return false;
  }
  return true;
}

WorldNews news_of(const World& world, int trainers, int servers, std::size_t rank) {
  const Member& member = world.members[rank];
  WorldNews news;
  news.generation = world.generation;
  news.attempt = world.attempt;
  news.run = world.run;
  news.rank = static_cast<std::int32_t>(rank);
  news.nodes = static_cast<std::int32_t>(world.members.size());
  news.first_trainer = member.first_trainer;
  news.trainers = trainers;
  news.first_server = member.first_server;
  news.servers = servers;
  news.rendezvous = world.rendezvous();
  return news;
}

void tell_world(State& state) {
  const World& world = *state.journal.world;
  const std::string hash = world.hash();
  const int trainers = world.trainers(), servers = world.servers();
  std::vector<ConnectionId> listed;
  for (const auto& node : state.nodes) node->previous_rank = -1;
  for (std::size_t rank = 0; rank < world.members.size(); ++rank) {
    Node* node = find(state, world.members[rank].node);
    if (!node) continue;
    WorldNews news = news_of(world, trainers, servers, rank);
    news.hash = hash;
    news.update = state.proposal.in_place && node->runs != 0;
    if (!news.update) node->done = false;
    node->previous_rank = static_cast<int>(rank);
    node->told = node->runs = world.generation;
    node->confirmed = std::max(node->confirmed, state.proposal.since);  // it said ready, or came
    node->parked = node->fenced = false;
    send(state, *node, Message(std::move(news)));
    if (node->wants_list && node->connection != 0) listed.push_back(node->connection);
  }
  if (!listed.empty()) {
    state.outputs.emplace_back(
        SendTo{std::move(listed),
               Message(WorldList{state.journal.world, state.journal.coordinator, state.journal.past})});
  }
}

/// The world is what it is from here on: stored where that is wanted, and told to all.
void tell_all(State& state) {
  const World& world = *state.journal.world;
  const bool in_place = state.proposal.in_place;
  tell_world(state);
  state.stage = Stage::running;
  state.attempt = world.attempt;
  state.known.formed(configuration_of(world, state.journal.coordinator));
  if (!in_place) {
    state.attempt_generation = world.generation;
    state.world_since = state.now;
    state.done_and_gone = 0;
  }
  state.proposal = {};
  state.faults.clear();
  state.loss_counted = state.growing = false;
  state.settle_until.reset();
  state.waiting_since.reset();
  state.no_quorum_since.reset();
  note(state, WorldFormed{state.journal.world});
  for (const auto& node : state.nodes) {
    if (node->told == world.generation || node->leaving) continue;
    node->parked = false;
    park(state, *node, unfit(state, *node));
  }
  finish_done(state);
}

/// Where all of `members` know of it, for it was in the newest world.
const Member* heir_of(const State& state, const std::vector<Member>& members) {
  const Member* heir = nullptr;
  for (const Member& member : members) {
    if (member.successor.port == 0) continue;
    if (has(state.journal.world->members, member.node)) return &member;
    if (!heir) heir = &member;
  }
  return heir;
}

/// Those that were to be the next world are told that they are enough without this host, and who leads them.
bool hands_over(State& state) {
  if (!leaves_itself(state) || !state.journal.world) return false;
  const Proposal& proposal = state.proposal;
  const Member* heir = heir_of(state, proposal.chosen);
  if (!heir) return false;
  const std::string why = "the host that coordinated the job leaves it";
  step_down(
      state, why,
      Redirect{
          heir->successor, why, {proposal.generation, state.attempt, heir->node, ids_of(proposal.chosen)}});
  return true;
}

void form(State& state) {
  if (hands_over(state)) return;
  Proposal& proposal = state.proposal;
  auto world = std::make_shared<World>();
  world->generation = proposal.generation;
  world->attempt = state.attempt + (proposal.in_place ? 0 : 1);
  world->run = state.journal.run;
  world->members = proposal.chosen;
  if (proposal.in_place)
    world->taken_over = take_over_servers(*state.journal.world, candidates_of(proposal.chosen)).value();
  int trainers = 0, servers = 0;
  for (Member& member : world->members) {
    const Node* node = find(state, member.node);
    const bool stays = proposal.in_place && node && node->runs != 0;
    const bool serves = !member.offer.servers.empty();
    if (node && !stays) member.offer = node->offer;
    if (proposal.in_place && !serves) member.offer.servers.clear();
    if (proposal.in_place) continue;
    member.first_trainer = trainers;
    member.first_server = servers;
    trainers += static_cast<int>(member.offer.trainers.size());
    servers += static_cast<int>(member.offer.servers.size());
  }
  Journal next = state.journal;
  next.generation = proposal.generation;
  next.world = std::move(world);
  next.coordinator = state.settings.node;
  next.formed = {};
  next.promised.clear();
  if (!state.settings.durable) {
    state.journal = std::move(next);
    return tell_all(state);
  }
  proposal.publishing = true;
  state.journal = next;
  state.outputs.emplace_back(Publish{std::move(next)});
}

/// Stops all, and waits for nodes, or for enough of those that know the newest world.
void wait_for_nodes(State& state) {
  const bool stopped = state.proposal.generation != 0 && !state.proposal.viable &&
                       std::all_of(state.nodes.begin(), state.nodes.end(), [&state](const auto& node) {
                         return node->runs == 0 || node->leaving || node->asked == state.proposal.generation;
                       });
  const bool anybody_runs = std::any_of(state.nodes.begin(), state.nodes.end(),
                                        [](const auto& node) { return node->runs != 0 && !node->leaving; });
  if (!stopped && anybody_runs) propose(state, {}, false, false);
  if (!anybody_runs && state.proposal.viable) state.proposal = {};
  state.stage = Stage::waiting;
  if (!state.waiting_since) state.waiting_since = state.now;
  if (quorum_here(state)) {
    state.no_quorum_since.reset();
  } else if (!state.no_quorum_since) {
    state.no_quorum_since = state.now;
  }
  if (state.now - *state.waiting_since >= state.settings.elastic_timeout)
    return end_job(state, {75,
                           state.why + ", and in " + shown(state.settings.elastic_timeout) +
                               " not enough hosts came: " + waiting_text(state),
                           "",
                           {}});
  if (state.no_quorum_since && state.now - *state.no_quorum_since >= state.settings.gather_time)
    step_down(state, "too few of the hosts that know the newest epoch are here", std::nullopt);
}

/// Nobody of the run before is left to go on: what is left of it are its generations and attempts, which are
/// not used again.
void begin_anew(State& state) {
  const Journal before = std::exchange(state.journal, {});
  state.journal.job_id = before.job_id;
  state.journal.run = before.run;
  state.known = {};
  state.policy = RestartPolicy(state.settings.restarts, state.settings.seed);
  state.waiting_since.reset();
  state.started = state.now;
  state.stage = Stage::gathering;
  gather(state);
}

/// Members of the newest world, but for those that have left it in good order since.
std::vector<Member> last_members(const State& state) {
  std::vector<Member> members = state.journal.world->members;
  const Configuration& newest = state.known.newest();
  if (newest.generation > state.journal.world->generation)
    std::erase_if(members, [&newest](const Member& member) {
      return std::find(newest.nodes.begin(), newest.nodes.end(), member.node) == newest.nodes.end();
    });
  return members;
}

/// A coordinator that has just taken over: members of the last world that have not come are lost.
void lose_absent(State& state) {
  state.hold_until = {};
  if (!state.journal.world) return;
  const std::vector<Member> members = last_members(state);
  std::vector<std::string> names;
  for (const Member& member : members) {
    if (!find(state, member.node)) names.push_back(member.name);
  }
  if (state.settings.durable && names.size() == members.size()) return begin_anew(state);
  for (const Member& member : members) {
    if (find(state, member.node)) continue;
    state.gone.push_back({member.name, state.now});
    note(state, NodeLost{member.name, member.node, "no word from it since another host coordinates", {}});
  }
  if (names.empty()) return;
  // They were given up for want of a quorum; should there be one sooner, their leases are waited for still.
  state.ghosts_until = std::max(state.ghosts_until, state.leases_over);
  state.why = listed(names) + (names.size() == 1 ? " was lost" : " were lost");
  lost_members(state, state.why, names.front());
}

bool still_gathering(State& state) {
  if (state.hold_until == Instant{}) return false;
  bool all = state.journal.world != nullptr;
  if (all) {
    for (const Member& member : last_members(state)) {
      const bool gone =
          member.node == state.journal.coordinator && state.now >= state.settings.predecessor_until;
      all = all && (gone || find(state, member.node));
    }
  }
  // Who has not come may not know yet that the coordinator is gone, and run on until its lease is over.
  if (!all && state.now < (quorum_here(state) ? state.leases_over : state.hold_until)) return true;
  lose_absent(state);
  return state.stage != Stage::waiting;
}

/// Newcomers that may be followed by others are waited for, as in the first world.
bool last_call(const State& state, std::size_t available) {
  return state.stage == Stage::waiting && state.last_arrival && state.hold_until == Instant{} &&
         available < static_cast<std::size_t>(state.settings.nodes.max) &&
         state.now - *state.last_arrival < state.settings.last_call && state.waiting_since &&
         *state.last_arrival > *state.waiting_since;
}

/// The set of members that was proposed can still be the next world.
bool keeps_proposal(const State& state) {
  const Proposal& proposal = state.proposal;
  if (proposal.generation == 0 || !proposal.viable || !quorum_here(state)) return false;
  std::set<std::string> here;  // a host may leave, or have been blamed too often since
  for (const Candidate& its : candidates_of(state)) here.insert(its.member.node);
  for (const Member& member : proposal.chosen) {
    const auto found = state.by_id.find(member.node);
    if (found == state.by_id.end() || found->second->asked != proposal.generation ||
        here.count(member.node) == 0)
      return false;
  }
  return true;
}

/// False: nothing that could become a world can be proposed, and nodes are waited for.
bool propose_next(State& state) {
  const std::vector<Candidate> candidates = candidates_of(state);
  const std::size_t size = world_size(state.settings.nodes, candidates.size());
  const std::vector<Candidate> useful = candidates_in_place(state, candidates);
  const std::size_t least = world_size(state.settings.nodes, useful.size());
  const bool in_place = least > 0 && state.stage == Stage::changing && goes_on_in_place(state, useful, least);
  std::vector<Member> chosen;
  if (size > 0)
    chosen = in_place ? arrange_in_place(*state.journal.world, useful, least) : arrange(candidates, size);
  if (size == 0 || !quorum_here(state) || last_call(state, candidates.size())) {
    wait_for_nodes(state);
    return false;
  }
  if (state.stage == Stage::waiting) state.stage = Stage::changing;
  propose(state, std::move(chosen), true, in_place);
  return true;
}

}  // namespace

void form_first(State& state, std::size_t size) {
  std::vector<Candidate> candidates;
  for (const auto& node : state.nodes) {
    if (node->connection != 0) candidates.push_back(candidate_of(*node));
  }
  state.proposal = {++state.highest, state.now, true, false, arrange(candidates, size), false};
  form(state);
  if (state.stage == Stage::gathering) state.stage = Stage::changing;  // until it is published
}

void begin_change(State& state, const std::string& why) {
  state.why = why;
  if (state.stage == Stage::running) state.stage = Stage::changing;
  regroup(state);
}

bool goes_on_in_place(const State& state) {
  const std::vector<Candidate> candidates = candidates_in_place(state, candidates_of(state));
  const std::size_t size = world_size(state.settings.nodes, candidates.size());
  return size > 0 && goes_on_in_place(state, candidates, size);
}

void stop_all(State& state) {
  const std::vector<Candidate> candidates = candidates_of(state);
  const std::size_t size = world_size(state.settings.nodes, candidates.size());
  std::vector<Member> chosen = arrange(candidates, size);
  const bool viable = size > 0 && quorum_here(state);
  if (!viable) chosen.clear();
  propose(state, std::move(chosen), viable, false);
}

void regroup(State& state) {
  if (state.stage != Stage::changing && state.stage != Stage::waiting) return;
  if (state.proposal.publishing || still_gathering(state)) return;
  for (const auto& node : state.nodes) {
    if (node->standing_wanted) return;
  }
  if (!keeps_proposal(state) && !propose_next(state)) return;
  if (all_ready(state)) form(state);
}

void on_ready(State& state, Node& node, const Ready& ready) {
  // Said twice over a connection that broke, it comes after the world has begun.
  if (ready.generation != node.asked || ready.generation <= node.told || node.leaving) return;
  node.prepared = ready.generation;
  const bool goes_on = state.proposal.in_place && state.proposal.generation == ready.generation &&
                       node.runs != 0 && has(state.proposal.chosen, node.node);
  if (!goes_on) {
    node.offer = ready.offer;
    node.runs = 0;
  }
  if (state.stage == Stage::settling) return settle(state);
  if (!all_ready(state)) return;
  regroup(state);
}

void on_published(State& state, bool stored) {
  if (!state.proposal.publishing) return;
  if (!stored) return step_down(state, "another host coordinates the job", std::nullopt);
  state.proposal.publishing = false;
  // Who was lost meanwhile is lost from this world, and another one follows at once.
  const std::vector<Member> members = state.journal.world->members;
  tell_all(state);
  for (const Member& member : members) {
    if (!find(state, member.node)) return lost_members(state, member.name + " was lost", member.name);
  }
}

void consider_growth(State& state) {
  if (state.stage != Stage::running || !state.settings.elastic || !state.journal.world) return;
  const std::size_t size = state.journal.world->members.size();
  if (size >= static_cast<std::size_t>(state.settings.nodes.max)) return;
  if (state.last_arrival && state.now - *state.last_arrival < state.settings.last_call) return;
  if (state.nodes.size() <= size) return;
  std::size_t available = 0;
  std::string newcomer;
  for (const auto& node : state.nodes) {
    // The job is about to end. A host of servers alone has nothing to wait for,
    // and is done from its start on.
    if (node->done && (!state.settings.in_place || !node->offer.trainers.empty())) return;
    const bool member = node->told == state.journal.world->generation;
    if (node->leaving || node->connection == 0 || (!member && state.quarantine.until(node->name) > state.now))
      continue;
    if (state.settings.in_place && !member && node->offer.trainers.empty()) continue;
    ++available;
    if (!member) newcomer = node->name;
  }
  if (newcomer.empty() || world_size(state.settings.nodes, available) <= size) return;
  state.growing = true;
  begin_change(state, newcomer + " came");
}

void tell_again(State& state, Node& node, std::uint64_t world_there) {
  if (state.proposal.generation != 0 && node.asked == state.proposal.generation &&
      node.prepared < node.asked) {
    Prepare prepare;
    prepare.generation = state.proposal.generation;
    prepare.why = state.why;
    prepare.in_place = state.proposal.in_place && node.runs != 0 && has(state.proposal.chosen, node.node);
    if (state.settings.takeover) {
      prepare.base = state.known.newest();
      if (state.proposal.viable)
        prepare.proposed = {prepare.generation, state.attempt + (state.proposal.in_place ? 0 : 1),
                            state.settings.node, ids_of(state.proposal.chosen)};
    }
    return send(state, node, Message(std::move(prepare)));
  }
  if (!state.journal.world || node.told != state.journal.world->generation || world_there >= node.told)
    return;
  const World& world = *state.journal.world;
  const auto rank = world.rank_of(node.node);
  if (!rank) return;
  WorldNews news = news_of(world, world.trainers(), world.servers(), *rank);
  news.hash = world.hash();
  news.update =
      state.attempt_generation < world.generation && node.prepared == world.generation && node.runs != 0;
  send(state, node, Message(std::move(news)));
  if (node.wants_list)
    send(state, node, Message(WorldList{state.journal.world, state.journal.coordinator, state.journal.past}));
}

}  // namespace fleetrun::launcher::coordinating
