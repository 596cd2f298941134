// Who may take part: hellos, refusals, spares, and the first world.
//
// The first world is formed straight from the offers of the hellos: with all that there can be at once, with
// the least that there must be when nobody else came for `last_call`. A node that comes again within the
// lease goes on where it was; one that comes after it was lost is a newcomer.

#include <algorithm>

#include "launcher/cluster/coordinator_state.h"
#include "launcher/cluster/message_text.h"

namespace fleetrun::launcher::coordinating {
namespace {

constexpr int kRefusal = 125, kLeftBehind = 75;

void refuse(State& state, ConnectionId connection, const Hello& hello, Refused refused) {
  note(state, NodeRefused{hello.name, refused.text});
  state.outputs.emplace_back(SendTo{{connection}, Message(std::move(refused))});
  state.outputs.emplace_back(CloseConnection{connection});
}

/// Heard so lately that it is there for certain.
bool surely_here(const State& state, const Node& node) {
  return node.connection != 0 && state.now - node.heard < 2 * state.settings.beat;
}

std::string nodes_text(const NodeCount& nodes) {
  std::string text = "--nnodes=" + std::to_string(nodes.min);
  if (nodes.max != nodes.min || nodes.multiple != 1) text += ":" + std::to_string(nodes.max);
  if (nodes.multiple != 1) text += ":" + std::to_string(nodes.multiple);
  return text;
}

std::optional<Refused> misfit(const State& state, const Hello& hello) {
  if (hello.protocol != kClusterProtocol || hello.version != state.settings.version)
    return Refused{"this host runs fleetrun " + hello.version +
                       ", the host that coordinates the job runs fleetrun " + state.settings.version,
                   "install the same version on all hosts", kRefusal};
  if (hello.job_id != state.settings.job_id)
    return Refused{"this host was started for job \"" + hello.job_id + "\", and here job \"" +
                       state.settings.job_id + "\" meets",
                   "give all hosts the same --job_id, or each job a --master port of its own", kRefusal};
  if (hello.node.empty() || hello.name.empty()) return Refused{"a host without a name", "", kRefusal};
  if (hello.nodes.min != 0 && hello.nodes != state.settings.nodes)
    return Refused{hello.name + " was started with " + nodes_text(hello.nodes) +
                       ", and the host that coordinates the job with " + nodes_text(state.settings.nodes),
                   "give all hosts the same --nnodes", kRefusal};
  const int max = state.settings.nodes.max;
  if (hello.requested_rank >= max)
    return Refused{"node rank " + std::to_string(hello.requested_rank) + " of " + hello.name +
                       " is not below the number of hosts, " + std::to_string(max),
                   "number the hosts from 0 to " + std::to_string(max - 1), kRefusal};
  return std::nullopt;
}

/// The same node rank twice: the one that was there stays, unless it is the same host that was started again.
std::optional<Refused> rank_taken(State& state, const Hello& hello) {
  if (hello.requested_rank < 0) return std::nullopt;
  for (const auto& other : state.nodes) {
    if (other->requested_rank != hello.requested_rank || other->node == hello.node) continue;
    if (!surely_here(state, *other) && other->name == hello.name) {
      lose(state, *other, "it was started again", {});
      return std::nullopt;
    }
    return Refused{"node rank " + std::to_string(hello.requested_rank) + " is taken twice: by " +
                       other->name + " and by " + hello.name,
                   "give each host a --node_rank of its own, or none", kRefusal};
  }
  return std::nullopt;
}

/// Nobody's place is free, or may become so: all hosts of a full world are here, and answer.
bool is_full(const State& state) {
  if (!state.journal.world) return false;
  const std::vector<Member>& members = state.journal.world->members;
  return members.size() == static_cast<std::size_t>(state.settings.nodes.max) &&
         std::ranges::all_of(members, [&state](const Member& member) {
           return std::ranges::any_of(state.nodes, [&](const auto& node) {
             return node->node == member.node && node->connection != 0 && !node->suspected;
           });
         });
}

/// A job that ends when it loses a host takes nobody in any more once it has all of them: whoever comes then
/// belongs to another job, and would end with this one's status and without having run.
std::optional<Refused> superfluous(const State& state, const Hello& hello) {
  if (hello.world != 0 || !ends_at_a_loss(state) || !is_full(state)) return std::nullopt;
  return Refused{"the job that meets here has all its " +
                     counted(static_cast<std::size_t>(state.settings.nodes.max), "host") + ", and " +
                     hello.name + " came after them",
                 "give each job a --master port of its own, or wait until that one has ended", kRefusal};
}

void welcome(State& state, const Node& node, bool resumed) {
  send(state, node,
       Message(Welcome{state.settings.version, state.journal.run, state.settings.node, resumed,
                       state.stage == Stage::waiting, static_cast<std::int32_t>(state.settings.beat.count()),
                       static_cast<std::int32_t>(state.settings.lost_after.count())}));
}

/// What it went through elsewhere counts: a world or a promise that this coordinator does not know.
void learn(State& state, Node& node, const Hello& hello, std::uint64_t asked_here) {
  state.highest = std::max({state.highest, hello.promised, hello.formed});
  const bool elsewhere = hello.formed > state.known.newest().generation ||
                         (hello.promised > asked_here && hello.promised > state.known.newest().generation);
  if (!state.settings.takeover || !(elsewhere || node.standing_wanted)) return;
  node.standing_wanted = true;
  send(state, node, Message(AskStanding{}));
}

void resume(State& state, Node& node, ConnectionId connection, const Hello& hello) {
  if (node.connection != 0) close(state, node.connection);
  node.connection = connection;
  node.connections = hello.connection;
  heard(state, node);
  state.by_connection[connection] = &node;
  const bool same = hello.world <= std::max(node.told, node.brought) && !node.leaving;
  const std::uint64_t asked = node.asked;
  welcome(state, node, same || node.leaving);
  learn(state, node, hello, asked);
  if (node.leaving) send(state, node, Message(End{node.own_end, true}));
  if (state.end) return send(state, node, Message(End{*state.end, false}));
  if (node.leaving) return;
  if (!same || (hello.fenced && node.runs != 0)) on_fenced_node(state, node);
  if (state.stage == Stage::over) return;
  tell_again(state, node, hello.world);
}

Node& add(State& state, ConnectionId connection, const Hello& hello) {
  state.foreign.erase(hello.name);  // that host was started again
  auto owned = std::make_unique<Node>();
  Node& node = *owned;
  node.node = hello.node;
  node.name = hello.name;
  node.pod = hello.pod;
  node.successor = hello.successor;
  node.offer = hello.offer;
  node.program = hello.program;
  node.requested_rank = hello.requested_rank;
  node.wants_list = hello.wants_list;
  node.connections = hello.connection;
  node.connection = connection;
  node.heard = node.came = state.now;
  node.brought = hello.world;
  const auto& before = state.known.newest().nodes;
  const auto rank = std::find(before.begin(), before.end(), node.node);
  if (rank != before.end()) node.previous_rank = static_cast<int>(rank - before.begin());
  state.by_id[node.node] = &node;
  state.by_connection[connection] = &node;
  state.nodes.push_back(std::move(owned));
  state.last_arrival = state.now;
  std::erase_if(state.gone, [&node](const Gone& gone) { return gone.name == node.name; });
  return node;
}

/// A host that the job waits for, and that comes with a new launcher: what ran there is gone.
void lose_before(State& state, const Hello& hello) {
  for (const auto& other : state.nodes) {
    if (other->suspected && other->name == hello.name) return lose(state, *other, "it was started again", {});
  }
}

/// Said once of each program, and not refused: a path of its own may stand in a host's copy.
void compare_programs(State& state, const Node& newcomer) {
  if (newcomer.program == 0) return;
  const Node* other = nullptr;
  for (const auto& node : state.nodes) {
    if (node.get() == &newcomer || node->program == 0) continue;
    if (node->program == newcomer.program) return;
    if (!other) other = node.get();
  }
  if (other) note(state, ProgramsDiffer{newcomer.name, other->name});
}

void admit(State& state, ConnectionId connection, const Hello& hello) {
  lose_before(state, hello);
  if (state.end || state.stage == Stage::over) return;
  const bool returning = hello.world != 0 && state.journal.run == hello.run;
  const bool takeover = state.stage == Stage::waiting && state.now < state.hold_until;
  if (returning && !takeover && ends_at_a_loss(state) && state.stage != Stage::gathering)
    return refuse(state, connection, hello, {"the others went on without " + hello.name, "", kLeftBehind});
  Node& node = add(state, connection, hello);
  note(state, NodeJoined{node.name, node.node});
  compare_programs(state, node);
  welcome(state, node, false);
  learn(state, node, hello, 0);
  if (state.stage == Stage::gathering) return gather(state);
  if (state.stage == Stage::waiting) return regroup(state);
  if (state.stage == Stage::running) consider_growth(state);
  if (state.hold_until != Instant{}) return;  // who is to wait is seen when it is known who is left
  if (state.stage != Stage::over && node.asked == 0 && !node.parked) park(state, node, unfit(state, node));
}

}  // namespace

void on_hello(State& state, ConnectionId connection, const Hello& hello) {
  if (const std::optional<Refused> refused = misfit(state, hello))
    return refuse(state, connection, hello, *refused);
  if (!hello.run.empty() && hello.run != state.journal.run) {
    // Another run of this job is under way, and has lost its coordinator:
    // it goes on without us, or we join it.
    state.foreign[hello.name] = state.now + 4 * std::min(state.settings.lost_after, kQuiet);
    state.outputs.emplace_back(SendTo{{connection}, Message(NotYet{})});
    state.outputs.emplace_back(CloseConnection{connection});
    return;
  }
  if (Node* node = find(state, hello.node)) {
    if (hello.connection > node->connections) return resume(state, *node, connection, hello);
    return refuse(state, connection, hello,
                  {"two hosts have the same identity: " + node->name + " and " + hello.name,
                   "start one of them again", kRefusal});
  }
  if (const std::optional<Refused> refused = superfluous(state, hello))
    return refuse(state, connection, hello, *refused);
  if (state.end) {
    state.outputs.emplace_back(SendTo{{connection}, Message(End{*state.end, false})});
    state.outputs.emplace_back(CloseConnection{connection});
    return;
  }
  if (const std::optional<Refused> refused = rank_taken(state, hello))
    return refuse(state, connection, hello, *refused);
  if (state.stage == Stage::over || state.end) return;
  admit(state, connection, hello);
}

void on_standing(State& state, Node& node, const Standing& standing) {
  node.standing_wanted = false;
  if (standing.formed.generation > state.known.newest().generation) {
    for (const auto& other : state.nodes) other->previous_rank = -1;
    const auto& ids = standing.formed.nodes;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (Node* other = find(state, ids[i])) other->previous_rank = static_cast<int>(i);
    }
  }
  state.known.formed(standing.formed);
  for (const Configuration& proposal : standing.promised) state.known.promised(proposal);
  state.highest = std::max(state.highest, standing.formed.generation);
  for (const Configuration& proposal : standing.promised)
    state.highest = std::max(state.highest, proposal.generation);
  state.attempt = std::max(state.attempt, state.known.newest().attempt);
  if (state.journal.world && state.known.newest().generation > state.journal.world->generation &&
      state.stage == Stage::running)
    return begin_change(state, "other hosts had formed a newer epoch");
  regroup(state);
}

/// Two runs of one job have both formed worlds, while neither could see the other. The one that began first
/// goes on.
void settle_runs(State& state, const Acting& other) {
  if (other.run < state.journal.run)
    return end_job(state,
                   {kRefusal,
                    "a run of job \"" + state.settings.job_id + "\" that began earlier goes on; " +
                        to_string(other.coordinator) + " coordinates it. Start this host again to join it",
                    "",
                    {}});
  if (may_go_on(state)) state.outputs.emplace_back(TellOnce{other.coordinator, Message(acting_here(state))});
}

void on_acting(State& state, const Acting& acting) {
  if (acting.job_id != state.settings.job_id || acting.coordinator == state.settings.own || state.end) return;
  const std::uint64_t ours = state.known.newest().generation;
  if (acting.run != state.journal.run && ours != 0) return settle_runs(state, acting);
  if (acting.run == state.journal.run && acting.generation <= ours) return;
  const std::string why = "another host coordinates the job";
  step_down(state, why, Redirect{acting.coordinator, why, {}});
}

std::string unfit(const State& state, const Node& node) {
  const Instant rests = state.quarantine.until(node.name) - state.now;
  if (rests > Instant{})
    return node.name + " was blamed too often, and rests for " +
           shown(std::chrono::duration_cast<std::chrono::milliseconds>(rests));
  const NodeCount& nodes = state.settings.nodes;
  if (state.journal.world && state.journal.world->members.size() >= static_cast<std::size_t>(nodes.max))
    return "the job has all its " + counted(static_cast<std::size_t>(nodes.max), "host");
  return "the job takes it in with its next epoch";
}

void park(State& state, Node& node, const std::string& why) {
  if (node.parked) return;
  node.parked = true;
  note(state, NodeParked{node.name, why});
  send(state, node, Message(Parked{why}));
  if (node.wants_list && state.journal.world)  // where to look, should this coordinator be lost
    send(state, node, Message(WorldList{state.journal.world, state.journal.coordinator, state.journal.past}));
}

void gather(State& state) {
  const NodeCount& nodes = state.settings.nodes;
  if (state.stage != Stage::gathering) return;
  if (state.now - state.started >= state.settings.join_timeout)
    return end_job(
        state, {125,
                "not all hosts came in " + shown(state.settings.join_timeout) + ": " + waiting_text(state),
                "",
                {}});
  if (state.nodes.size() < static_cast<std::size_t>(nodes.min)) return;
  if (std::ranges::any_of(state.foreign, [&state](const auto& one) { return state.now < one.second; }))
    return;
  const auto here = static_cast<std::size_t>(std::count_if(
      state.nodes.begin(), state.nodes.end(), [](const auto& node) { return node->connection != 0; }));
  const bool all = here >= static_cast<std::size_t>(nodes.max);
  const bool last_call_over =
      state.last_arrival && state.now - *state.last_arrival >= state.settings.last_call;
  const std::size_t size = world_size(nodes, here);
  if (size > 0 && (all || last_call_over)) form_first(state, size);
}

std::vector<std::string> missing_names(const State& state) {
  std::vector<std::string> missing;
  const auto here = [&state](const std::string& name) {
    return std::any_of(state.nodes.begin(), state.nodes.end(),
                       [&](const auto& node) { return node->name == name; });
  };
  for (const std::string& name : state.settings.expected) {
    if (!here(name)) missing.push_back(name);
  }
  for (const Gone& gone : state.gone) {
    if (!here(gone.name) && std::find(missing.begin(), missing.end(), gone.name) == missing.end())
      missing.push_back(gone.name);
  }
  return missing;
}

std::string waiting_text(const State& state) {
  const auto min = static_cast<std::size_t>(state.settings.nodes.min);
  const std::size_t here = state.nodes.size();
  const std::size_t wanted = min > here ? min - here : 0;
  std::string text = "waiting for " + std::to_string(wanted) + " of " + counted(min, "host");
  if (wanted == 0) text = "waiting for hosts";
  std::vector<std::string> names = missing_names(state);
  const auto last_word = [&state](const std::string& name) {
    for (const Gone& gone : state.gone) {
      if (gone.name == name) return gone.since;
    }
    return state.started;
  };
  if (!names.empty()) {
    Instant longest = state.now;
    for (const std::string& name : names) longest = std::min(longest, last_word(name));
    return text + ": no word from " + listed(names) + " for " +
           shown(std::chrono::duration_cast<std::chrono::milliseconds>(state.now - longest));
  }
  for (const auto& node : state.nodes) names.push_back(node->name);
  return names.empty() ? text : text + "; here: " + listed(names);
}

void tell_waiting(State& state) {
  if (state.now < state.next_news) return;
  state.next_news = state.now + state.settings.news_every;
  if (state.stage != Stage::gathering && state.stage != Stage::waiting) return;
  const std::string text = waiting_text(state);
  note(state, WaitingForNodes{text});
  std::vector<ConnectionId> to;
  for (const auto& node : state.nodes) {
    if (node->connection != 0) to.push_back(node->connection);
  }
  if (!to.empty()) state.outputs.emplace_back(SendTo{std::move(to), Message(Waiting{text})});
}

}  // namespace fleetrun::launcher::coordinating
