#include "launcher/model/world.h"

#include <cstdio>

namespace fleetrun::launcher {
namespace {

/// FNV-1a over the parts of a world, each with its length, so that no two different worlds run together.
class Digest {
 public:
  void add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) step(static_cast<unsigned char>(number >> (8 * i)));
  }
  void add(std::string_view text) {
    add(text.size());
    for (const char c : text) step(static_cast<unsigned char>(c));
  }
  std::string text() const {
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(state_));
    return hex;
  }

 private:
  void step(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001b3; }
  std::uint64_t state_ = 0xcbf29ce484222325;
};

void grow(std::vector<Endpoint>& found, std::size_t size) {
  while (found.size() < size)
    found.push_back({"0.0.0.0", static_cast<std::uint16_t>(found.size() % 65'535 + 1)});
}

std::vector<Endpoint> endpoints(const std::vector<Member>& members, int Member::*first,
                                std::vector<std::uint16_t> PodOffer::*ports) {
  std::vector<Endpoint> found;
  for (const Member& member : members) {
    const std::vector<std::uint16_t>& own = member.offer.*ports;
    if (own.empty()) continue;
    const auto begin = static_cast<std::size_t>(member.*first);
    grow(found, begin + own.size());
    for (std::size_t i = 0; i < own.size(); ++i) found[begin + i] = {member.offer.host, own[i]};
  }
  return found;
}

std::vector<Endpoint> server_endpoints_of(const World& world, Endpoint TakenOver::*where) {
  std::vector<Endpoint> found = endpoints(world.members, &Member::first_server, &PodOffer::servers);
  for (const TakenOver& server : world.taken_over) {
    grow(found, static_cast<std::size_t>(server.rank) + 1);
    found[static_cast<std::size_t>(server.rank)] = server.*where;
  }
  return found;
}

}  // namespace

int World::trainers() const noexcept {
  std::size_t count = 0;
  for (const Member& member : members) count += member.offer.trainers.size();
  return static_cast<int>(count);
}

int World::servers() const noexcept {
  std::size_t count = 0;
  for (const Member& member : members) count += member.offer.servers.size();
  return static_cast<int>(count + taken_over.size());
}

std::vector<Endpoint> World::trainer_endpoints() const {
  return endpoints(members, &Member::first_trainer, &PodOffer::trainers);
}

std::vector<Endpoint> World::server_endpoints() const {
  return server_endpoints_of(*this, &TakenOver::endpoint);
}

std::vector<Endpoint> World::first_server_endpoints() const {
  return server_endpoints_of(*this, &TakenOver::first);
}

Endpoint World::rendezvous() const {
  if (members.empty()) return {};
  const Member* host = &members.front();
  for (const Member& member : members) {
    if (!member.offer.servers.empty() && member.first_server == 0) host = &member;
  }
  return {host->offer.host, host->offer.rendezvous};
}

std::optional<std::size_t> World::rank_of(std::string_view node) const noexcept {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].node == node) return i;
  }
  return std::nullopt;
}

std::string World::hash() const {
  Digest digest;
  digest.add(generation);
  digest.add(static_cast<std::uint64_t>(attempt));
  digest.add(run);
  digest.add(members.size());
  for (const Member& member : members) {
    digest.add(member.node);
    digest.add(member.name);
    digest.add(member.pod);
    digest.add(member.successor.host);
    digest.add(member.successor.port);
    digest.add(member.offer.host);
    digest.add(member.offer.trainers.size());
    for (const std::uint16_t port : member.offer.trainers) digest.add(port);
    digest.add(member.offer.servers.size());
    for (const std::uint16_t port : member.offer.servers) digest.add(port);
    digest.add(member.offer.standbys.size());
    for (const std::uint16_t port : member.offer.standbys) digest.add(port);
    digest.add(member.offer.rendezvous);
    digest.add(static_cast<std::uint64_t>(member.first_trainer));
    digest.add(static_cast<std::uint64_t>(member.first_server));
  }
  digest.add(taken_over.size());
  for (const TakenOver& server : taken_over) {
    digest.add(static_cast<std::uint64_t>(server.rank));
    digest.add(server.node);
    digest.add(to_string(server.endpoint));
    digest.add(to_string(server.first));
  }
  return digest.text();
}

}  // namespace fleetrun::launcher
