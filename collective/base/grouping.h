// How the ranks of a communicator are to reach each other, from where they are and what was asked for. Pure.
//
//   all on one host         shared memory
//   one rank on each host   Gloo
//   else                    in two levels: the ranks of a host by shared memory,
//                           the first ranks of the hosts by Gloo
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::collective {

/// How a group's ranks reach each other. automatic: as above.
enum class Transport { automatic, shared_memory, gloo };
std::string_view to_string(Transport transport) noexcept;
/// "auto", "shm" or "gloo". Throws: Error(config).
Transport parse_transport(const std::string& text);

struct GroupingSpec {
  Transport transport = Transport::automatic;
  /// true: in two levels. false: all ranks alike.
  std::optional<bool> hierarchical = {};
  /// Consecutive ranks that form an inner group; 0: the ranks of a host do.
  int inner_size = 0;
};

/// Ranks that reach each other alike.
struct RankGroup {
  Transport transport = Transport::shared_memory;  // never automatic
  std::vector<int> ranks = {};                     // ascending

  bool operator==(const RankGroup&) const = default;
};

/// One group of all ranks, or several: then their first ranks form a group of their own,
/// by Gloo unless all are on one host.
struct Grouping {
  std::vector<RankGroup> groups;
  Transport outer = Transport::gloo;

  bool is_flat() const noexcept { return groups.size() == 1; }
  bool operator==(const Grouping&) const = default;
};

/// `hosts`: by rank, equal where two ranks share a host.
/// Throws: Error(config) where ranks of several hosts are to share memory, and where inner_size does not
/// divide the number of ranks, as Paddle's hierarchical all-reduce wants it;
/// one that is not below it means: flat.
Grouping group_ranks(const std::vector<std::string>& hosts, const GroupingSpec& spec);

}  // namespace fleetrun::collective
