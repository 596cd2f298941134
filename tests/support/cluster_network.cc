// The virtual network: ordered within a connection, in any order between them. What is sent into a cut waits,
// as TCP does, until the link is whole again or the connection is given up.

#include <algorithm>

#include "tests/support/cluster_simulation.h"

namespace fleetrun::testing {

using cluster::Closing;

namespace {

constexpr Instant kGivenUp = milliseconds(3'000), kAgain = milliseconds(150), kConnect = milliseconds(1'000);
constexpr std::uint16_t kSuccessors = 20'000;

}  // namespace

Instant Simulation::delay(const Launcher& from, const Launcher& to) {
  if (from.number == to.number) return Instant(5);
  return chance_.time(milliseconds(0), rules_.longest_delay) + Instant(50);
}

Launcher* Simulation::listener(const Endpoint& endpoint) {
  if (endpoint.port >= kSuccessors) {
    const std::size_t number = endpoint.port - std::size_t{kSuccessors};
    return number < launchers_.size() && launchers_[number].alive ? &launchers_[number] : nullptr;
  }
  const int host = endpoint.host[1] - '0';
  for (Launcher& launcher : launchers_) {
    if (launcher.host == host && launcher.alive) return &launcher;
  }
  return nullptr;
}

void Simulation::dial(Launcher& launcher, const cluster::joining::Dial& dial) {
  if (launcher.uplink >= 0) close(launcher.uplink, 0, Packet::Kind::fin);
  launcher.uplink = -1;
  launcher.dialing = dial;
  Instant takes = Instant(5);
  if (!dial.here) {
    const Launcher* other = listener(dial.to);
    const int host = dial.to.host[1] - '0';
    const bool vanished = cut(launcher.host, host) || cut(host, launcher.host);
    takes = vanished ? kConnect : delay(launcher, other ? *other : launcher) * 2;
  }
  at(now_ + takes, Happening::dialed, launcher.number, dial.uplink);
}

void Simulation::dialed(Launcher& launcher, std::uint64_t uplink) {
  if (launcher.dialing.uplink != uplink || !launcher.member) return;
  const cluster::joining::Dial& dial = launcher.dialing;
  Launcher* other = dial.here ? &launcher : listener(dial.to);
  const int host = dial.here ? launcher.host : dial.to.host[1] - '0';
  const bool vanished = cut(launcher.host, host) || cut(host, launcher.host);
  if (!other || vanished || (dial.here && !launcher.coordinator))
    return apply(launcher, launcher.member->on_dial_failed(
                               uplink, vanished ? "no answer" : "connection refused", now_));
  Link& link = links_.emplace_back();
  link.ends[0] = launcher.number;
  link.ends[1] = other->number;
  link.uplink = uplink;
  link.here = dial.here;
  launcher.uplink = static_cast<int>(links_.size()) - 1;
  apply(launcher, launcher.member->on_connected(uplink, now_));
}

void Simulation::transmit(int number, int from, Packet packet) {
  Link& link = links_[index(number)];
  auto& packets = link.packets[from];
  packet.due = now_ + delay(launchers_[index(link.ends[from])], launchers_[index(link.ends[1 - from])]);
  if (!packets.empty()) packet.due = std::max(packet.due, packets.back().due + Instant(1));
  at(packet.due, Happening::deliver, -1, static_cast<std::uint64_t>(number),
     static_cast<std::uint64_t>(from));
  packets.push_back(std::move(packet));
}

void Simulation::send(int number, int from, const cluster::SharedMessage& message) {
  Link& link = links_[index(number)];
  if (!link.open[from]) return;
  if (traced_ && !std::holds_alternative<cluster::Beat>(message.message()))
    trace(&launchers_[index(link.ends[from])], [&] {
      return "    " + std::string(name_of(message.message())) + " -> #" +
             std::to_string(link.ends[1 - from]) + " (link " + std::to_string(number) + ")";
    });
  if (rules_.coded)
    return transmit(number, from, {Packet::Kind::message, cluster::decode(message.bytes()), {}});
  transmit(number, from, {Packet::Kind::message, message, {}});
}

void Simulation::close(int number, int side, Packet::Kind kind) {
  Link& link = links_[index(number)];
  if (!link.open[side]) return;
  link.open[side] = false;
  transmit(number, side, {kind, std::nullopt, {}});
}

void Simulation::drop(int number, int side, Closing how) {
  Link& link = links_[index(number)];
  if (!link.open[side]) return;
  link.open[side] = false;
  Launcher& launcher = launchers_[index(link.ends[side])];
  at(now_, Happening::closed, launcher.number, static_cast<std::uint64_t>(number),
     how == Closing::closed ? 1 : 0);
}

void Simulation::dropped(Launcher& launcher, int number, bool closed) {
  Link& link = links_[index(number)];
  const Closing how = closed ? Closing::closed : Closing::broken;
  if (link.ends[0] == launcher.number && launcher.uplink == number) {
    launcher.uplink = -1;
    apply(launcher, launcher.member->on_closed(link.uplink, how, now_));
  }
  if (link.ends[1] == launcher.number && launcher.coordinator)
    apply(launcher, launcher.coordinator->on_closed(connection_of(number), how, now_));
}

void Simulation::deliver(int number, int from) {
  Link& link = links_[index(number)];
  auto& packets = link.packets[from];
  if (packets.empty()) return;
  const Launcher& sender = launchers_[index(link.ends[from])];
  Launcher& receiver = launchers_[index(link.ends[1 - from])];
  if (cut(sender.host, receiver.host)) {
    if (now_ - packets.front().due < kGivenUp)
      return at(now_ + kAgain, Happening::deliver, -1, static_cast<std::uint64_t>(number),
                static_cast<std::uint64_t>(from));
    packets.clear();
    return drop(number, from, Closing::broken);
  }
  if (packets.front().due > now_) return;  // held up by a cut before: its own time comes
  if (receiver.alive && receiver.frozen) {
    receiver.deferred.push_back({now_, ++orders_, Happening::deliver, -1, static_cast<std::uint64_t>(number),
                                 static_cast<std::uint64_t>(from)});
    return;
  }
  while (!packets.empty() && packets.front().due <= now_ && !receiver.frozen) {
    const Packet packet = std::move(packets.front());
    packets.pop_front();
    receive(number, from, packet);
  }
}

void Simulation::receive(int number, int from, const Packet& packet) {
  Link& link = links_[index(number)];
  const int to = 1 - from;
  Launcher& receiver = launchers_[index(link.ends[to])];
  if (!receiver.alive || !link.open[to]) {
    // Nobody reads here any more: a reset goes back, when it can.
    const Launcher& sender = launchers_[index(link.ends[from])];
    if (packet.kind == Packet::Kind::message && link.open[from] && !cut(receiver.host, sender.host))
      drop(number, from, Closing::broken);
    return;
  }
  if (packet.kind != Packet::Kind::message)
    return drop(number, to, packet.kind == Packet::Kind::fin ? Closing::closed : Closing::broken);
  const cluster::Message& message = packet.message->message();
  if (to == 0) {
    if (receiver.uplink == number) apply(receiver, receiver.member->on(link.uplink, message, now_));
  } else if (receiver.coordinator) {
    apply(receiver, receiver.coordinator->on(connection_of(number), message, now_));
  } else if (receiver.member) {
    apply(receiver, receiver.member->on_stranger(connection_of(number), message, now_));
  }
  schedule(receiver);
}

}  // namespace fleetrun::testing
