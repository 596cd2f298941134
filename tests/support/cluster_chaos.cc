// What goes wrong, and how it is mended.

#include <algorithm>

#include "tests/support/cluster_simulation.h"

namespace fleetrun::testing {

Launcher* Simulation::some_launcher() {
  std::vector<Launcher*> living;
  for (Launcher& launcher : launchers_) {
    if (launcher.alive && launcher.member) living.push_back(&launcher);
  }
  return living.empty() ? nullptr : living[index(chance_.number(0, static_cast<int>(living.size()) - 1))];
}

void Simulation::kill(Launcher& launcher, bool host_too) {
  trace(&launcher, [&] { return std::string(host_too ? "its host VANISHES" : "is KILLED"); });
  launcher.alive = false;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    for (int side = 0; side < 2; ++side) {
      if (link.ends[side] != launcher.number || !link.open[side]) continue;
      if (host_too) {
        link.open[side] = false;
        link.packets[side].clear();
      } else {
        close(static_cast<int>(i), side, chance_.percent(70) ? Packet::Kind::fin : Packet::Kind::reset);
      }
    }
  }
  launcher.processes.life = Processes::Life::none;
  launcher.member.reset();
  launcher.coordinator.reset();
}

void Simulation::freeze(Launcher& launcher, Instant how_long) {
  if (launcher.frozen) return;
  trace(&launcher, [&] { return "FREEZES for " + std::to_string(how_long.count() / 1000) + " ms"; });
  launcher.frozen = true;
  launcher.thawed = now_ + how_long;
  at(now_ + how_long, Happening::chaos, launcher.number, 1);
}

void Simulation::thaw(Launcher& launcher) {
  if (!launcher.frozen || !launcher.alive) return;
  trace(&launcher, [&] { return std::string("thaws"); });
  launcher.frozen = false;
  launcher.thawed = now_;
  const std::vector<Occurrence> deferred = std::move(launcher.deferred);
  launcher.deferred.clear();
  bool wakes = false;
  for (Occurrence its : deferred) {
    wakes |= its.what == Happening::wake;
    its.at = now_;
    its.order = ++orders_;
    heap_.push_back(its);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  if (wakes) launcher.wake_at = now_;
}

void Simulation::cut_link(Instant how_long) {
  const int first = chance_.number(0, rules_.hosts - 1);
  const int second = chance_.number(0, rules_.hosts - (rules_.controller ? 0 : 1));
  const bool both = chance_.percent(60);
  if (first == second) return;
  trace(nullptr, [&] {
    return "CUT h" + std::to_string(first) + (both ? " <-> h" : " -> h") + std::to_string(second) + " for " +
           std::to_string(how_long.count() / 1000) + " ms";
  });
  cuts_[index(first)][index(second)] = true;
  if (both) cuts_[index(second)][index(first)] = true;
  at(now_ + how_long, Happening::heals, -1, 0, static_cast<std::uint64_t>(first * 8 + second));
}

void Simulation::partition(Instant how_long) {
  const int side = chance_.number(1, (1 << rules_.hosts) - 2);
  trace(nullptr, [&] {
    return "PARTITION " + std::to_string(side) + " for " + std::to_string(how_long.count() / 1000) + " ms";
  });
  for (int a = 0; a <= rules_.hosts; ++a) {
    for (int b = 0; b <= rules_.hosts; ++b) {
      if (((side >> a) & 1) == ((side >> b) & 1)) continue;
      cuts_[index(a)][index(b)] = true;
      at(now_ + how_long, Happening::heals, -1, 0, static_cast<std::uint64_t>(a * 8 + b));
    }
  }
}

void Simulation::break_link() {
  if (links_.empty()) return;
  const int number = chance_.number(0, static_cast<int>(links_.size()) - 1);
  if (links_[index(number)].here) return;
  trace(nullptr, [&] { return "link " + std::to_string(number) + " BREAKS"; });
  for (int side = 0; side < 2; ++side) links_[index(number)].packets[side].clear();
  drop(number, 0, cluster::Closing::broken);
  drop(number, 1, cluster::Closing::broken);
}

void Simulation::cause_trouble() {
  Launcher* launcher = some_launcher();
  const Instant how_long = chance_.time(milliseconds(200), milliseconds(7'000));
  switch (chance_.number(0, rules_.leavers ? 16 : 11)) {
    case 0:
    case 1: {  // a launcher dies, and another one may come in its place
      if (!launcher) return;
      const int host = launcher->host;
      kill(*launcher, chance_.percent(40));
      if (chance_.percent(60)) at(now_ + how_long / 2, Happening::chaos, host, 2);
      return;
    }
    case 2:
    case 3:
      if (launcher) freeze(*launcher, how_long);
      return;
    case 4:
    case 5:
      return cut_link(how_long);
    case 6:
    case 7:
      return partition(how_long);
    case 8:
    case 9:  // a process fails
      if (launcher && launcher->processes.life == Processes::Life::running)
        at(now_, Happening::fails, launcher->number, launcher->processes.start_number);
      return;
    case 10:
      return break_link();
    default:
      if (!launcher || launcher->frozen || !launcher->alive || !(rules_.leavers || chance_.percent(30)))
        return;
      trace(launcher, [&] { return std::string("is STOPPED by its user"); });
      apply(*launcher, launcher->member->stop(15, now_));
      schedule(*launcher);
  }
}

/// Links become whole one by one, and all of them when the trouble is over.
void Simulation::heal() {
  for (auto& row : cuts_) row.fill(false);
  for (Launcher& launcher : launchers_) thaw(launcher);
  trace(nullptr, [] { return std::string("all links are WHOLE, nobody is frozen"); });
}

}  // namespace fleetrun::testing
