// Open addressing with linear probing over indices into the list of distinct keys. The first slot of the key
// some positions ahead is fetched early; the table is the only thing here that is not read in order.
#include "ps/base/key_groups.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "ps/base/key_partition.h"
#include "ps/base/row_copy.h"
#include "runtime/base/error.h"
#include "runtime/base/mix.h"

namespace fleetrun::ps {
namespace {

constexpr std::uint32_t kEmpty = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kAhead = 16;

// Fills keys, first and group in order of first appearance.
void find_distinct(std::span<const std::uint64_t> keys, KeyGroups& out) {
  const std::size_t slots = std::bit_ceil(2 * keys.size() + 2);
  const int shift = 64 - std::countr_zero(slots);
  std::vector<std::uint32_t> table(slots, kEmpty);
  const auto slot_of = [shift](std::uint64_t key) { return mix(key) >> shift; };
  out.group.resize(keys.size());
  out.keys.reserve(keys.size());
  out.first.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) __builtin_prefetch(&table[slot_of(keys[i + kAhead])], 1);
    std::size_t slot = slot_of(keys[i]);
    while (table[slot] != kEmpty && out.keys[table[slot]] != keys[i]) slot = (slot + 1) & (slots - 1);
    if (table[slot] == kEmpty) {
      table[slot] = static_cast<std::uint32_t>(out.keys.size());
      out.keys.push_back(keys[i]);
      out.first.push_back(static_cast<std::uint32_t>(i));
    }
    out.group[i] = table[slot];
  }
}

// Renumbers the groups so that each server's keys are contiguous; the order within a server stays.
void order_by_server(std::uint32_t servers, KeyGroups& out) {
  const std::size_t distinct = out.keys.size();
  std::vector<std::uint32_t> owner(distinct);
  for (std::size_t g = 0; g < distinct; ++g) {
    owner[g] = server_of(out.keys[g], servers);
    ++out.begin[owner[g] + 1];
  }
  for (std::uint32_t s = 0; s < servers; ++s) out.begin[s + 1] += out.begin[s];
  std::vector<std::uint32_t> next(out.begin.begin(), out.begin.end() - 1);
  std::vector<std::uint32_t> renumbered(distinct);
  std::vector<std::uint64_t> keys(distinct);
  std::vector<std::uint32_t> first(distinct);
  for (std::size_t g = 0; g < distinct; ++g) {
    const std::uint32_t to = next[owner[g]]++;
    renumbered[g] = to;
    keys[to] = out.keys[g];
    first[to] = out.first[g];
  }
  for (std::uint32_t& g : out.group) g = renumbered[g];
  out.keys = std::move(keys);
  out.first = std::move(first);
}

}  // namespace

KeyGroups group_keys(std::span<const std::uint64_t> keys, std::uint32_t servers) {
  if (keys.size() >= (std::size_t{1} << 31)) {
    throw Error(ErrorKind::data,
                "a batch of " + std::to_string(keys.size()) + " keys; at most 2147483647 fit",
                "use a smaller batch");
  }
  KeyGroups out;
  out.begin.assign(servers + 1, 0);
  find_distinct(keys, out);
  if (servers == 1) {
    out.begin[1] = static_cast<std::uint32_t>(out.keys.size());
  } else {
    order_by_server(servers, out);
  }
  return out;
}

void sum_by_group(const KeyGroups& groups, std::span<const float> gradients, std::size_t width,
                  std::span<float* const> outputs) {
  const auto servers = static_cast<std::uint32_t>(outputs.size());
  std::vector<float*> rows;
  if (servers > 1) {
    rows.reserve(groups.keys.size());
    for (std::uint32_t s = 0; s < servers; ++s) {
      for (std::uint32_t g = groups.begin[s]; g < groups.begin[s + 1]; ++g) {
        rows.push_back(outputs[s] + (g - groups.begin[s]) * width);
      }
    }
  }
  for (std::size_t i = 0; i < groups.group.size(); ++i) {
    const std::uint32_t g = groups.group[i];
    float* to = servers > 1 ? rows[g] : outputs[0] + g * width;
    const float* from = gradients.data() + i * width;
    if (groups.first[g] == i) {
      copy_row(to, from, width);
    } else {
      for (std::size_t c = 0; c < width; ++c) to[c] += from[c];
    }
  }
}

void count_by_group(const KeyGroups& groups, std::span<float* const> outputs) {
  std::vector<float> counts(groups.keys.size(), 0.0f);
  for (const std::uint32_t g : groups.group) counts[g] += 1.0f;
  for (std::size_t s = 0; s < outputs.size(); ++s) {
    std::copy(counts.begin() + groups.begin[s], counts.begin() + groups.begin[s + 1], outputs[s]);
  }
}

}  // namespace fleetrun::ps
