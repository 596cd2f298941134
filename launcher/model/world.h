// A world: the hosts that run one generation of a job together, and what each of them brings. Values, no I/O.
//
// Words: a *node* is one launcher that takes part in a job of several hosts, from its start to its end (a
// launcher that is started again is another node). A *member* is a node that is in the world. A *generation*
// is one world; generations are numbered from 1 and no number is used twice in a run.
// An *attempt* is one start of the job's processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/model/failure_cause.h"
#include "runtime/base/endpoint.h"

namespace fleetrun::launcher {

/// What a host brings to a generation: everything that the plans of the others need of it.
struct PodOffer {
  std::string host;                              // the address in its endpoints
  std::vector<std::uint16_t> trainers, servers;  // their ports, by local rank
  std::uint16_t rendezvous = 0;                  // of the job's store (or Gloo's), should this host have it
  // Where servers take others' places: one port of each, then another of each, and so on; none: they do not.
  std::vector<std::uint16_t> standbys = {};

  bool operator==(const PodOffer&) const = default;
};

struct Member {
  std::string node;    // 32 hexadecimal digits that its launcher drew at its start
  std::string name;    // how people know the host: as the user wrote it, else its own name
  std::string pod;     // six letters
  Endpoint successor;  // where it would coordinate, were the coordinator lost; port 0: nowhere
  PodOffer offer;
  int first_trainer = 0, first_server = 0;  // ranks over the job of its first trainer and server

  bool operator==(const Member&) const = default;
};

/// A server of a host that is lost, which its standby's process serves.
struct TakenOver {
  int rank = 0;
  std::string node;          // the member that serves it
  Endpoint endpoint, first;  // where it is, and where it was at first

  bool operator==(const TakenOver&) const = default;
};

/// Ranks are prefix sums over the members, in their order. In a parameter-server job that goes on while
/// trainers come and go (`in_place`), everybody keeps the ranks it has,
/// and those of a lost host stay free until one comes.
struct World {
  std::uint64_t generation = 0;
  int attempt = 0;
  std::string run;              // 32 hexadecimal digits, drawn once for a run of the job
  std::vector<Member> members;  // by node rank
  std::vector<TakenOver> taken_over = {};

  bool operator==(const World&) const = default;

  int trainers() const noexcept;  // of all members
  int servers() const noexcept;   // and those that were taken over
  /// By rank. A free rank has the host 0.0.0.0 and a port that no other has in the list.
  std::vector<Endpoint> trainer_endpoints() const;
  std::vector<Endpoint> server_endpoints() const;
  std::vector<Endpoint> first_server_endpoints() const;  // where those that were taken over were at first
  /// Of the job's store: the first member's, or, where there are servers, that of server 0.
  Endpoint rendezvous() const;
  /// Node rank of `node`; nullopt: not a member.
  std::optional<std::size_t> rank_of(std::string_view node) const noexcept;
  /// 16 hexadecimal digits over everything above: equal worlds have equal hashes.
  std::string hash() const;
};

/// A world, and where this host stands in it.
struct WorldPlace {
  World world;
  std::size_t node_rank = 0;
};

/// A failed process of one host, told to all.
struct NodeFailure {
  std::string process;  // "trainer 3"
  int exit_status = 0;  // that fleetrun ends with because of it
  FailureKind kind = FailureKind::crash;
  std::string text;         // the sentence after its name: "exited with code 1"
  std::string signature;    // launcher/failure/cause.h
  std::string screen;       // what the failure screen of its host says, 8 KiB at most
  std::int64_t at = 0;      // its death, CLOCK_MONOTONIC of its host in ns
  std::int64_t ran_ms = 0;  // from the start of the attempt
  std::optional<std::int64_t> progress;
  bool port_clash = false;  // one of its ports was in use by another process
  bool restarts = true;     // its role is started again as a group (RestartScope::group)

  bool operator==(const NodeFailure&) const = default;
};

/// How the job ended, told to all members.
struct JobEnd {
  int exit_status = 0;
  std::string why;   // a sentence: "trainer 3 on h2 exited with code 1"; empty after success
  std::string node;  // name of the host where it began; empty: the job's own end
  std::optional<NodeFailure> failure;  // that decided the outcome

  bool operator==(const JobEnd&) const = default;
};

}  // namespace fleetrun::launcher
