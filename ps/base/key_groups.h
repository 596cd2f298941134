// The distinct keys of a batch, ordered by server: each key travels once and each row is touched once,
// however often a batch names it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fleetrun::ps {

struct KeyGroups {
  /// Distinct keys: those of server 0 first, within a server in order of first appearance.
  std::vector<std::uint64_t> keys;
  /// Position of each distinct key's first appearance in the batch.
  std::vector<std::uint32_t> first;
  /// For each position of the batch the index of its key in `keys`.
  std::vector<std::uint32_t> group;
  /// Server s has keys[begin[s], begin[s + 1]).
  std::vector<std::uint32_t> begin;

  std::span<const std::uint64_t> keys_of(std::uint32_t server) const {
    return {keys.data() + begin[server], keys.data() + begin[server + 1]};
  }
};

/// Cost: one pass with a hash table of two to four times the batch in 32-bit words, so it stays in the second
/// level cache for 26,000 keys. Throws: Error(data) for 2^31 keys or more.
KeyGroups group_keys(std::span<const std::uint64_t> keys, std::uint32_t servers);

/// Adds up the gradient rows of equal keys, in the order of their positions: one summed row per distinct key,
/// written to outputs[server] in the order of keys_of(server).
///
/// Shape: gradients[positions, width]; outputs[server] has room for keys_of(server).size() rows.
void sum_by_group(const KeyGroups& groups, std::span<const float> gradients, std::size_t width,
                  std::span<float* const> outputs);

/// How often each distinct key is in the batch, written as sum_by_group() writes.
void count_by_group(const KeyGroups& groups, std::span<float* const> outputs);

}  // namespace fleetrun::ps
