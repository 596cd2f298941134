// Who is in a world, and with which ranks. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "launcher/model/job_config.h"
#include "launcher/model/world.h"

namespace fleetrun::launcher {

/// A node that could be in the next world.
struct Candidate {
  Member member;           // its first ranks are not read
  int previous_rank = -1;  // its node rank in the world before; -1: it was not in it
  int requested_rank = -1;
};

/// The size of a world when `available` nodes are here; 0: none can be formed.
std::size_t world_size(const NodeCount& nodes, std::size_t available) noexcept;

/// The members of a world of `size`, by node rank. Those who were in the world before go first, then those
/// that ask for a rank that is free, then in the order of `candidates`. Who was in the world before keeps its
/// rank where that is below `size`; a requested rank is kept free for the one that asks for it; what is left
/// open is filled by newcomers first, then from the end. Needs size <= candidates.size().
std::vector<Member> arrange(const std::vector<Candidate>& candidates, std::size_t size);

/// Who serves for the servers of those members that are not among `candidates`, in a world that goes on in
/// place: their standbys' processes (runtime/base/standby_ring.h), on hosts that are there, each for as many
/// as it has ports for. nullopt: nobody could serve one of them.
std::optional<std::vector<TakenOver>> take_over_servers(const World& before,
                                                        const std::vector<Candidate>& candidates);

/// The members of a world that goes on in place: those of `before` who are still there, with the ranks that
/// they have, and then the newcomers, each where a hole is wide enough for it, else at the end. Newcomers
/// bring only trainers: those who run keep their rows on the servers that they know.
std::vector<Member> arrange_in_place(const World& before, const std::vector<Candidate>& candidates,
                                     std::size_t max);

}  // namespace fleetrun::launcher
