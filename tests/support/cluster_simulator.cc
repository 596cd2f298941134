#include "tests/support/cluster_simulator.h"

#include <algorithm>
#include <cstdio>

#include "tests/support/cluster_simulation.h"

namespace fleetrun::testing {

using cluster::ConnectionId;

namespace {

constexpr std::uint16_t kMaster = 9'000, kSuccessors = 20'000;

std::string id_of(std::uint64_t high, std::uint64_t low) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

std::string host_name(int host) {
  return "h" + std::to_string(host);
}

}  // namespace

Simulation::Simulation(std::uint64_t seed, bool traced)
    : chance_(seed), traced_(traced), rules_(draw_rules()) {
  rules_.coded = seed % 64 == 0;
  rules_.leavers = seed > 1'000'000;
  trace(nullptr, [this] {
    return std::to_string(rules_.hosts) + " hosts, nodes " + std::to_string(rules_.nodes.min) + ":" +
           std::to_string(rules_.nodes.max) + ":" + std::to_string(rules_.nodes.multiple) +
           (rules_.elastic ? ", elastic" : "") + (rules_.in_place ? ", in place" : "") +
           (rules_.controller ? ", head" : "") + (rules_.pinned ? ", pinned" : "") +
           (rules_.restarts.any() ? ", restarts" : "");
  });
}

Rules Simulation::draw_rules() {
  Rules rules;
  rules.hosts = chance_.number(2, 5);
  rules.controller = chance_.percent(20);
  rules.elastic = chance_.percent(75);
  rules.nodes.max = rules.hosts;
  rules.nodes.min = rules.hosts;
  if (rules.elastic && chance_.percent(85)) rules.nodes.min = chance_.number(1, rules.hosts);
  if (rules.elastic && rules.hosts == 4 && chance_.percent(20)) {
    rules.nodes.multiple = 2;
    rules.nodes.min = 2;
  }
  if (rules.hosts > 2 && chance_.percent(15)) {  // one host more than the job takes
    --rules.nodes.max;
    rules.nodes.min = std::min(rules.nodes.min, rules.nodes.max);
    rules.nodes.multiple = 1;
  }
  rules.in_place = rules.elastic && chance_.percent(25);
  if (chance_.percent(50)) rules.restarts.budgets.fill(chance_.percent(50) ? -1 : 3);
  rules.restarts.backoff = milliseconds(200);
  rules.restarts.longest_backoff = milliseconds(2'000);
  rules.restarts.same_failures = 50;
  rules.pinned = chance_.percent(30) && rules.nodes.max == rules.hosts;
  const Instant delays[] = {milliseconds(1), milliseconds(5), milliseconds(40), milliseconds(200)};
  rules.longest_delay = delays[chance_.number(0, 3)];
  rules.chaos_ends = now_ + chance_.time(milliseconds(3'000), milliseconds(9'000));
  const bool slow = rules.longest_delay >= milliseconds(200);
  rules.elastic_timeout = milliseconds(slow ? 60'000 : 30'000);
  rules.judged = rules.chaos_ends + milliseconds(slow ? 45'000 : 25'000);
  rules.ended = rules.judged + rules.elastic_timeout + milliseconds(45'000);
  rules.lost_after = milliseconds(chance_.percent(20) ? 8'000 : 3'000);
  rules.happenings = chance_.number(0, 7);
  rules.work = chance_.percent(30) ? chance_.time(milliseconds(500), milliseconds(6'000)) : Instant::min();
  return rules;
}

int Simulation::start_launcher(int host) {
  Launcher& launcher = launchers_.emplace_back();
  launcher.number = static_cast<int>(launchers_.size()) - 1;
  launcher.host = host;
  const auto port = static_cast<std::uint16_t>(kSuccessors + launcher.number);
  launcher.offer = {host_name(host), {static_cast<std::uint16_t>(port + 1'000), 1}, {}, 0};
  if (host % 2 == 1) launcher.offer.trainers.pop_back();
  if (rules_.in_place && host == 0) launcher.offer.servers = {2};
  if (host == rules_.hosts) {
    make_coordinator(launcher, std::nullopt, false);
    schedule(launcher);
    return launcher.number;
  }
  cluster::MemberSettings settings;
  settings.job_id = "job";
  settings.version = "1";
  settings.node = id_of(static_cast<std::uint64_t>(launcher.number) + 1, chance_.next());
  settings.name = host_name(host);
  settings.pod = "podpod";
  settings.requested_rank = rules_.pinned ? host : -1;
  settings.takeover = !rules_.controller;
  if (!rules_.controller) settings.successor = {host_name(host), port};
  settings.offer = launcher.offer;
  settings.coordinator = Endpoint{host_name(rules_.controller ? rules_.hosts : 0), kMaster};
  settings.coordinates = !rules_.controller && host == 0;
  settings.join_timeout = milliseconds(45'000);
  settings.elastic_timeout = rules_.elastic_timeout;
  settings.lost_after = rules_.lost_after;
  launcher.member = std::make_unique<cluster::MemberCore>(settings);
  trace(&launcher, [&] { return "starts on " + settings.name + " as " + settings.node; });
  if (settings.coordinates) make_coordinator(launcher, std::nullopt, false);
  apply(launcher, launcher.member->start(now_));
  schedule(launcher);
  return launcher.number;
}

cluster::CoordinatorSettings Simulation::coordinator_settings(const Launcher& launcher) const {
  cluster::CoordinatorSettings settings;
  settings.job_id = "job";
  settings.version = "1";
  settings.nodes = rules_.nodes;
  settings.elastic = rules_.elastic;
  settings.in_place = rules_.in_place;
  settings.takeover = !rules_.controller;
  settings.restarts = rules_.restarts;
  settings.join_timeout = milliseconds(40'000);
  settings.elastic_timeout = rules_.elastic_timeout;
  settings.lost_after = rules_.lost_after;
  settings.prepare_timeout = kPrepareTimeout;
  settings.quarantine = milliseconds(3'000);
  settings.own = {host_name(launcher.host), kMaster};
  return settings;
}

void Simulation::make_coordinator(Launcher& launcher, std::optional<cluster::Journal> journal,
                                  bool took_over) {
  cluster::CoordinatorSettings settings = coordinator_settings(launcher);
  settings.run = id_of(chance_.next(), chance_.next());
  settings.seed = chance_.next();
  if (launcher.member) settings.node = launcher.member->node();
  if (took_over) {
    settings.own = {host_name(launcher.host), static_cast<std::uint16_t>(kSuccessors + launcher.number)};
    settings.heralded = Endpoint{host_name(0), kMaster};
  }
  launcher.took_over = took_over;
  launcher.coordinator = std::make_unique<cluster::CoordinatorCore>(settings, std::move(journal), now_);
  trace(&launcher, [&] { return std::string(took_over ? "offers itself as coordinator" : "coordinates"); });
}

void Simulation::trace_line(const Launcher* launcher, const std::string& text) {
  char time[32];
  std::snprintf(time, sizeof time, "%9.3f ", static_cast<double>(now_.count()) / 1e6);
  std::string line = time;
  if (launcher) line += "#" + std::to_string(launcher->number) + "@h" + std::to_string(launcher->host) + " ";
  outcome_.trace.push_back(line + text);
}

void Simulation::at(Instant when, Happening what, int launcher, std::uint64_t number, std::uint64_t other) {
  heap_.push_back({std::max(when, now_), ++orders_, what, launcher, number, other});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void Simulation::schedule(Launcher& launcher) {
  if (!launcher.alive) return;
  Instant next = launcher.member ? launcher.member->next_deadline() : Instant::max();
  if (launcher.coordinator) next = std::min(next, launcher.coordinator->next_deadline());
  if (next >= launcher.wake_at || next == Instant::max()) return;
  launcher.wake_at = next;
  at(next, Happening::wake, launcher.number);
}

void Simulation::happen(const Occurrence& its) {
  switch (its.what) {
    case Happening::chaos:
      if (its.number == 1) return thaw(launchers_[index(its.launcher)]);
      if (its.number == 2) {
        if (!listener({host_name(its.launcher), kMaster})) start_launcher(its.launcher);
        return;
      }
      return cause_trouble();
    case Happening::heals:
      if (its.number == 1) return heal();
      cuts_[its.other / 8][its.other % 8] = cuts_[its.other % 8][its.other / 8] = false;
      return;
    case Happening::judge:
      return judge();
    case Happening::deliver:
      return deliver(static_cast<int>(its.number), static_cast<int>(its.other));
    default:
      break;
  }
  Launcher& launcher = launchers_[index(its.launcher)];
  if (!launcher.alive) return;
  if (its.what == Happening::lapses) return lapse(launcher, Instant(static_cast<std::int64_t>(its.number)));
  if (launcher.frozen && its.what != Happening::works) {
    launcher.deferred.push_back(its);
    return;
  }
  if (its.what == Happening::wake) {
    if (its.at < launcher.wake_at && launcher.wake_at != Instant::max()) return;
    launcher.wake_at = Instant::max();
    if (launcher.coordinator) apply(launcher, launcher.coordinator->on_tick(now_));
    if (launcher.alive && launcher.member) apply(launcher, launcher.member->on_tick(now_));
  } else if (its.what == Happening::dialed) {
    dialed(launcher, its.number);
  } else if (its.what == Happening::closed) {
    dropped(launcher, static_cast<int>(its.number), its.other == 1);
  } else {
    process_event(launcher, its);
  }
  schedule(launcher);
}

SimulationOutcome Simulation::run() {
  for (int host = 0; host < rules_.hosts + (rules_.controller ? 1 : 0); ++host) {
    // The first ones early, so that most jobs begin before the trouble.
    if (rules_.controller && host == 0) start_launcher(rules_.hosts);
    if (host < rules_.hosts) start_launcher(host);
  }
  for (int i = 0; i < rules_.happenings; ++i) at(chance_.time(now_, rules_.chaos_ends), Happening::chaos);
  at(rules_.chaos_ends, Happening::heals, -1, 1);
  at(rules_.judged, Happening::judge, -1, 0);
  at(rules_.ended, Happening::judge, -1, 1);
  while (!heap_.empty() && outcome_.violation.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Occurrence next = heap_.back();
    heap_.pop_back();
    same_time_ = next.at == now_ ? same_time_ + 1 : 0;
    if (same_time_ > 5'000) violate("#" + std::to_string(next.launcher) + " is due again and again at once");
    now_ = next.at;
    ++outcome_.events;
    happen(next);
    if (now_ <= rules_.chaos_ends) continue;
    const bool all_over = std::none_of(launchers_.begin(), launchers_.end(),
                                       [](const Launcher& its) { return its.alive && its.member; });
    if (all_over) break;
  }
  return std::move(outcome_);
}

struct MemberAnswers {
  Simulation& simulation;
  Launcher& launcher;

  void operator()(const cluster::joining::Dial& dial) const { simulation.dial(launcher, dial); }
  void operator()(const cluster::joining::Send& send) const {
    if (launcher.uplink >= 0) simulation.send(launcher.uplink, 0, send.message);
  }
  void operator()(const cluster::joining::HangUp& its) const {
    if (launcher.uplink >= 0)
      simulation.close(launcher.uplink, 0, its.cut ? Packet::Kind::reset : Packet::Kind::fin);
    launcher.uplink = -1;
  }
  void operator()(const cluster::joining::Coordinate& its) const {
    const bool begins = its.journal.run.empty();
    simulation.make_coordinator(launcher, begins ? std::nullopt : std::optional(its.journal), !begins);
  }
  void operator()(const cluster::joining::Answer& answer) const {
    const int link = Simulation::link_of(answer.stranger);
    simulation.send(link, 1, answer.message);
    simulation.close(link, 1, Packet::Kind::fin);
  }
  void operator()(const cluster::joining::TellNews& news) const {
    simulation.trace(&launcher, [&] { return "news: " + news.text; });
  }
  void operator()(const cluster::joining::TellPrepare& its) const {
    simulation.trace(&launcher,
                     [&] { return "prepares for " + std::to_string(its.generation) + ": " + its.why; });
    simulation.on_prepare(launcher, its.generation);
  }
  void operator()(const cluster::joining::TellWorld& its) const { simulation.on_world(launcher, its); }
  void operator()(const cluster::joining::TellLease& its) const { simulation.on_lease(launcher, its); }
  void operator()(const cluster::joining::TellFenced& its) const {
    simulation.trace(&launcher, [&] { return "fenced: " + its.why; });
    simulation.on_fenced(launcher);
  }
  void operator()(const cluster::joining::TellJobOver& its) const { simulation.on_over(launcher, its.end); }
};

struct CoordinatorAnswers {
  Simulation& simulation;
  Launcher& launcher;

  void operator()(const cluster::coordinating::SendTo& send) const {
    for (const ConnectionId to : send.to) simulation.send(Simulation::link_of(to), 1, send.message);
  }
  void operator()(const cluster::coordinating::CloseConnection& its) const {
    simulation.close(Simulation::link_of(its.connection), 1, Packet::Kind::fin);
  }
  void operator()(const cluster::coordinating::TellOnce& its) const {
    Launcher* other = simulation.listener(its.to);
    if (!other || simulation.cut(launcher.host, other->host) || simulation.cut(other->host, launcher.host))
      return;
    Link& link = simulation.links_.emplace_back();
    link.ends[0] = launcher.number;
    link.ends[1] = other->number;
    const int number = static_cast<int>(simulation.links_.size()) - 1;
    simulation.send(number, 0, its.message);
    simulation.close(number, 0, Packet::Kind::fin);
  }
  void operator()(const cluster::coordinating::Publish&) const {}
  void operator()(const cluster::coordinating::Note& its) const {
    simulation.trace(&launcher, [&] { return "[coordinator] " + to_string(its.event); });
    if (std::holds_alternative<cluster::NodeLost>(its.event)) simulation.lost_ = simulation.now_;
    const auto* formed = std::get_if<cluster::WorldFormed>(&its.event);
    if (!formed) return;
    ++simulation.outcome_.worlds;
    if (launcher.took_over) ++simulation.outcome_.takeovers;
    if (!simulation.newest_ || simulation.newest_->run != formed->world->run ||
        simulation.newest_->generation < formed->world->generation)
      simulation.newest_ = formed->world;
  }
  void operator()(const cluster::coordinating::StepDown& its) const {
    simulation.trace(&launcher, [&] { return "[coordinator] steps down: " + its.why; });
    if (launcher.member)
      simulation.apply(launcher, launcher.member->on_stepped_down(its.why, simulation.now_));
  }
  void operator()(const cluster::coordinating::Over& its) const {
    simulation.trace(&launcher, [&] { return "[coordinator] is over: " + its.end.why; });
    if (!launcher.member) launcher.over = true;
  }
};

void Simulation::apply(Launcher& launcher, cluster::joining::Outputs outputs) {
  for (const auto& output : outputs) std::visit(MemberAnswers{*this, launcher}, output);
}

void Simulation::apply(Launcher& launcher, cluster::coordinating::Outputs outputs) {
  for (const auto& output : outputs) std::visit(CoordinatorAnswers{*this, launcher}, output);
  // Only here: none of its functions is under way any more.
  if (launcher.coordinator && launcher.coordinator->over()) launcher.coordinator.reset();
}

SimulationOutcome simulate_cluster(std::uint64_t seed, bool traced) {
  return Simulation(seed, traced).run();
}

}  // namespace fleetrun::testing
