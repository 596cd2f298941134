// The processes of the simulated launchers, and the judge of what all of them do.

#include <algorithm>

#include "launcher/cluster/ranks.h"
#include "tests/support/cluster_simulation.h"

namespace fleetrun::testing {

void Simulation::violate(const std::string& what) {
  if (!outcome_.violation.empty()) return;
  trace(nullptr, [&] { return "VIOLATION: " + what; });
  outcome_.violation = what;
}

void Simulation::on_prepare(Launcher& launcher, std::uint64_t generation) {
  Processes& processes = launcher.processes;
  const bool alive = processes.life != Processes::Life::none;
  processes.preparing = generation;
  if (alive) processes.life = Processes::Life::stopping;
  ++processes.start_number;
  const bool slow = chance_.percent(2);
  const Instant takes =
      !alive ? Instant(2'000) : chance_.time(milliseconds(1), milliseconds(slow ? 10'000 : 400));
  at(now_ + takes, Happening::stopped, launcher.number, processes.start_number, generation);
}

void Simulation::on_world(Launcher& launcher, const cluster::joining::TellWorld& told) {
  trace(&launcher, [&] {
    return (told.news.update ? "goes on in epoch " : "runs epoch ") + std::to_string(told.news.generation) +
           " attempt " + std::to_string(told.news.attempt) + " as " + std::to_string(told.news.rank) +
           " of " + std::to_string(told.news.nodes);
  });
  check_world(launcher, told);
  Processes& processes = launcher.processes;
  if (told.news.update) {
    if (processes.life != Processes::Life::running || processes.attempt != told.news.attempt)
      violate("an update came to a node that does not run");
    processes.generation = told.news.generation;
    return;
  }
  if (processes.life != Processes::Life::none) violate("a world came to a node whose processes run");
  processes = {Processes::Life::running,
               processes.start_number + 1,
               told.news.generation,
               told.news.attempt,
               told.news.run,
               false,
               0};
  at(now_ + milliseconds(50), Happening::started, launcher.number, processes.start_number);
  const Instant done = rules_.work == Instant::min() ? rules_.judged + milliseconds(1'000) +
                                                           chance_.time(milliseconds(0), milliseconds(500))
                                                     : now_ + rules_.work;
  at(done, Happening::works, launcher.number, processes.start_number);
  check_overlap(launcher);
}

/// Nobody runs another attempt at this moment: not for a millisecond, frozen or not. What is to end and has
/// not ended yet runs.
void Simulation::check_overlap(const Launcher& later) {
  for (const Launcher& other : launchers_) {
    const Processes& its = other.processes;
    const bool stands = other.lease_stands != Instant{} && now_ >= other.lease_stands;
    if (!other.alive || its.life == Processes::Life::none || stands) continue;
    if (its.run != later.processes.run || its.attempt == later.processes.attempt) continue;
    violate("#" + std::to_string(other.number) + " still runs epoch " + std::to_string(its.generation) +
            " while #" + std::to_string(later.number) + " begins epoch " +
            std::to_string(later.processes.generation));
  }
}

void Simulation::on_fenced(Launcher& launcher) {
  launcher.processes.life = Processes::Life::none;
  launcher.processes.preparing = 0;
  launcher.unexplained.reset();
  ++launcher.processes.start_number;
}

void Simulation::on_lease(Launcher& launcher, const cluster::joining::TellLease& lease) {
  launcher.lease_stands = lease.stands;
  launcher.lease_ends = lease.ends;
  if (lease.ends != Instant{})
    at(lease.ends, Happening::lapses, launcher.number, static_cast<std::uint64_t>(lease.ends.count()));
}

/// fleetrun-init is not frozen with its launcher, which learns of it when it runs again.
void Simulation::lapse(Launcher& launcher, Instant ends) {
  if (launcher.lease_ends != ends || launcher.processes.life == Processes::Life::none) return;
  trace(&launcher, [] { return std::string("its lease is over"); });
  launcher.processes.life = Processes::Life::none;
  ++launcher.processes.start_number;
  at(now_, Happening::lapsed, launcher.number, launcher.processes.start_number);
}

void Simulation::on_over(Launcher& launcher, const cluster::JobEnd& end) {
  trace(&launcher, [&] { return "is over with " + std::to_string(end.exit_status) + ": " + end.why; });
  if (launcher.over) return violate("a launcher was told twice that the job is over");
  if (end.exit_status != 0 && end.why.empty()) violate("a job ended without a reason");
  launcher.over = true;
  launcher.status = end.exit_status;
  launcher.why = end.why;
  outcome_.finished_well |= end.exit_status == 0;
  ++launcher.processes.start_number;
  if (launcher.processes.life != Processes::Life::none) launcher.processes.life = Processes::Life::stopping;
  const Instant grace = milliseconds(rules_.leavers ? 3'000 : 300);
  at(now_ + chance_.time(milliseconds(1), grace), Happening::leaves, launcher.number);
}

void Simulation::explain(Launcher& launcher) {
  if (!launcher.unexplained) return;
  cluster::NodeFailure failure;
  failure.process = "trainer 0";
  failure.exit_status = 1;
  failure.text = "exited with code 1";
  const auto [generation, died] = *launcher.unexplained;
  launcher.unexplained.reset();
  apply(launcher, launcher.member->failed(generation, failure, died, now_));
}

void Simulation::process_event(Launcher& launcher, const Occurrence& its) {
  Processes& processes = launcher.processes;
  if (its.what == Happening::leaves) {
    processes.life = Processes::Life::none;
    if (!launcher.leaves) apply(launcher, launcher.member->leave("the job is over", now_));
    launcher.leaves = true;
    if (launcher.coordinator) return at(now_ + milliseconds(100), Happening::leaves, launcher.number);
    trace(&launcher, [] { return std::string("exits"); });
    launcher.alive = false;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      for (int side = 0; side < 2; ++side) {
        if (links_[i].ends[side] == launcher.number) close(static_cast<int>(i), side, Packet::Kind::fin);
      }
    }
    launcher.member.reset();
    return;
  }
  if (its.number != processes.start_number || launcher.over) return;
  switch (its.what) {
    case Happening::stopped:
      explain(launcher);
      processes.life = Processes::Life::none;
      processes.preparing = 0;
      ++launcher.offer.trainers.front();
      return apply(launcher, launcher.member->ready(its.other, launcher.offer, now_));
    case Happening::lapsed:
      return apply(launcher, launcher.member->lapsed(now_));
    case Happening::started:
      return apply(launcher, launcher.member->running(processes.generation, now_));
    case Happening::fails:
      trace(&launcher, [] { return std::string("a process FAILS"); });
      launcher.unexplained = {processes.generation, now_};
      at(now_ + chance_.time(milliseconds(0), milliseconds(400)), Happening::explains, launcher.number,
         processes.start_number);
      return apply(launcher, launcher.member->failing(processes.generation, "trainer 0", now_));
    case Happening::explains:
      return explain(launcher);
    case Happening::works:
      if (launcher.frozen || processes.life != Processes::Life::running) {
        if (launcher.frozen)
          at(now_ + milliseconds(500), Happening::works, launcher.number, processes.start_number);
        return;
      }
      processes.done = true;
      return apply(launcher, launcher.member->done(processes.generation, now_));
    default:
      return;
  }
}

void Simulation::check_world(Launcher& launcher, const cluster::joining::TellWorld& told) {
  const cluster::World& world = *told.world;
  const auto [hash, fresh] = hashes_.try_emplace({world.run, world.generation}, told.news.hash);
  if (!fresh && hash->second != told.news.hash)
    violate("two worlds have epoch " + std::to_string(world.generation) + " of one run");
  if (world.hash() != told.news.hash) violate("a world does not have the hash that was told");
  if (launcher.told_run == world.run && told.news.generation <= launcher.told)
    violate("epoch " + std::to_string(told.news.generation) + " was told after epoch " +
            std::to_string(launcher.told));
  launcher.told = told.news.generation;
  launcher.told_run = world.run;
  const auto size = static_cast<int>(world.members.size());
  if (size < rules_.nodes.min || size > rules_.nodes.max || size % rules_.nodes.multiple != 0)
    violate("a world of " + std::to_string(size) + " hosts");
  if (world.rank_of(launcher.member->node()) != static_cast<std::size_t>(told.news.rank))
    violate("a member is not at its rank");
  std::set<std::string> nodes;
  std::set<int> ranks;
  int next = 0;
  for (const cluster::Member& member : world.members) {
    nodes.insert(member.node);
    if (!rules_.in_place && member.first_trainer != next) violate("the ranks of trainers have a hole");
    for (std::size_t i = 0; i < member.offer.trainers.size(); ++i) {
      if (!ranks.insert(member.first_trainer + static_cast<int>(i)).second)
        violate("two trainers have one rank");
    }
    next += static_cast<int>(member.offer.trainers.size());
  }
  if (nodes.size() != world.members.size()) violate("a node is twice in a world");
}

/// Enough nodes for the rules live and were told no end;
/// and those that may succeed each other hold a quorum of all that they know.
bool Simulation::enough_live() const {
  // Where nobody listens at the first coordinator's address, a newcomer finds nobody.
  const bool door =
      rules_.controller || std::any_of(launchers_.begin(), launchers_.end(),
                                       [](const Launcher& its) { return its.host == 0 && its.alive; });
  int live = 0;
  std::set<std::string> nodes;
  cluster::KnownConfigurations known;
  for (const Launcher& launcher : launchers_) {
    if (!launcher.alive || !launcher.member || launcher.over) continue;
    if (!door && !launcher.member->world()) continue;
    // One of an earlier run stays with that; one that was never told of a world may be of either.
    if (newest_ && !launcher.told_run.empty() && launcher.told_run != newest_->run) continue;
    ++live;
    if (!newest_ || launcher.told_run.empty()) continue;
    nodes.insert(launcher.member->node());
    known.formed(launcher.member->known().newest());
  }
  for (const Launcher& launcher : launchers_) {
    if (!launcher.alive || !launcher.member || nodes.count(launcher.member->node()) == 0) continue;
    if (!newest_ || launcher.told_run != newest_->run) continue;
    for (const cluster::Configuration& proposal : launcher.member->known().proposals())
      known.promised(proposal);
  }
  if (cluster::world_size(rules_.nodes, static_cast<std::size_t>(live)) == 0) return false;
  if (rules_.controller)
    return std::any_of(launchers_.begin(), launchers_.end(),
                       [](const Launcher& its) { return !its.member && its.coordinator; });
  return newest_ && known.newest().generation >= newest_->generation &&
         known.quorum([&nodes](const std::string& node) { return nodes.count(node) > 0; });
}

/// Processes that take their time to end hold up the next world, and rightly.
bool Simulation::processes_stop() const {
  return std::any_of(launchers_.begin(), launchers_.end(), [](const Launcher& its) {
    return its.alive && !its.over && its.processes.life == Processes::Life::stopping;
  });
}

bool Simulation::a_world_runs() const {
  return std::any_of(launchers_.begin(), launchers_.end(), [](const Launcher& its) {
    return its.alive && its.member && its.processes.life == Processes::Life::running;
  });
}

void Simulation::judge() {
  const bool at_the_end = now_ >= rules_.ended;
  if (at_the_end) {
    for (const Launcher& launcher : launchers_) {
      if (launcher.alive && launcher.member) violate("#" + std::to_string(launcher.number) + " never ends");
    }
    return;
  }
  const bool again = worlds_when_judged_.has_value();
  const bool went_on = again && *worlds_when_judged_ != hashes_.size();
  if (went_on || a_world_runs() || !enough_live()) return;
  const bool may_wait = processes_stop() || now_ < lost_ + rules_.lost_after;
  if (again || !may_wait) return violate("enough nodes live, and no world runs");
  // Whoever does not end them in time is lost; the others have begun the next world when its lease is over.
  worlds_when_judged_ = hashes_.size();
  at(now_ + kPrepareTimeout + rules_.lost_after + milliseconds(2'000), Happening::judge);
}

}  // namespace fleetrun::testing
