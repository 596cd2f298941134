// How a job ends: everybody is told, and the coordinator stays until all know, or end_timeout.

#include <algorithm>

#include "launcher/cluster/coordinator_state.h"
#include "launcher/cluster/message_text.h"
#include "launcher/model/signal_map.h"

namespace fleetrun::launcher::coordinating {
namespace {

constexpr int kStoppedStatus = 128 + 15;

std::string signal_name(int signal) {
  switch (signal) {
    case 1:
      return "SIGHUP";
    case 2:
      return "SIGINT";
    case 15:
      return "SIGTERM";
    default:
      return "signal " + std::to_string(signal);
  }
}

/// Whether the job goes on when `leaver` goes.
bool enough_without(const State& state, const Node& leaver) {
  if (!state.settings.elastic || !state.journal.world) return false;
  const auto others =
      static_cast<std::size_t>(std::count_if(state.nodes.begin(), state.nodes.end(), [&](const auto& node) {
        return node.get() != &leaver && !node->leaving;
      }));
  return world_size(state.settings.nodes, others) > 0;
}

}  // namespace

void finish_done(State& state) {
  if (state.stage != Stage::running || !state.journal.world) return;
  const World& world = *state.journal.world;
  std::size_t done = state.done_and_gone;
  for (const auto& node : state.nodes)
    done += node->told == world.generation && node->done && !node->leaving ? 1 : 0;
  if (done >= world.members.size()) end_job(state, {});
}

void on_done(State& state, Node& node, const Done& done) {
  if (!state.journal.world || done.generation < state.attempt_generation ||
      done.generation > state.journal.world->generation)
    return;
  if (node.told != state.journal.world->generation) return;
  node.done = true;
  finish_done(state);
}

void on_stop(State& state, Node& node, const Stop& stop) {
  if (state.end || node.leaving) return;
  const bool drained = stop.signal == kDrained;
  const std::string why =
      (drained ? "drained" : "stopped by " + signal_name(stop.signal)) + " on " + node.name;
  const JobEnd own{status_of_stop(stop.signal), why, node.name, {}};
  if (!enough_without(state, node)) {
    send(state, node, Message(End{own, false}));
    node.leaving = true;  // it has its own end
    node.own_end = own;
    end_job(state, {drained ? own.exit_status : kStoppedStatus, why, node.name, {}});
    return;
  }
  send(state, node, Message(End{own, true}));
  node.leaving = true;
  node.leaves_since = state.now;
  node.own_end = own;
  state.why = node.name + " leaves: it was " + why;
  if (state.stage == Stage::running) return begin_change(state, state.why);
  if (state.stage == Stage::settling) return settle(state);
  regroup(state);
}

void end_job(State& state, JobEnd end) {
  if (state.end) return;
  state.stage = Stage::ending;
  state.end = std::move(end);
  state.ending_since = state.now;
  state.settle_until.reset();
  state.rest_until.reset();
  note(state, JobEnded{*state.end});
  std::vector<ConnectionId> to;
  for (const auto& node : state.nodes) {
    // Who left before has its own end, but its processes still have a lease.
    const bool knows = node->leaving && node->leaves_since == Instant{};
    if (node->connection != 0 && !knows) to.push_back(node->connection);
  }
  if (!to.empty()) state.outputs.emplace_back(SendTo{std::move(to), Message(End{*state.end, false})});
  finish_ending(state);
}

void on_knows_end(State& state, Node& node) {
  node.knows_end = true;
  if (state.stage == Stage::ending) return finish_ending(state);
  if (node.leaving) regroup(state);  // its vote may be what is missing
}

void finish_ending(State& state) {
  if (state.stage != Stage::ending) return;
  const bool all_know =
      std::all_of(state.nodes.begin(), state.nodes.end(), [](const auto& node) { return node->knows_end; });
  if (!all_know && state.now - state.ending_since < state.settings.end_timeout) return;
  state.stage = Stage::over;
  for (const auto& node : state.nodes) {
    if (node->connection != 0) state.outputs.emplace_back(CloseConnection{node->connection});
  }
  state.by_connection.clear();
  state.outputs.emplace_back(Over{*state.end});
}

}  // namespace fleetrun::launcher::coordinating
