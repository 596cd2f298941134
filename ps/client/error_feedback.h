// What shortening has cut off from gradients, kept in the client and added to the next gradient of the same
// key: over many steps the server receives the sum of the gradients, not the sum of their rounded values.
//
// Memory is bounded: a place is kept for so many keys of a table, chosen by hash. A key that needs the place
// of another has it; what was left of the other is lost, and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "ps/base/encoding.h"

namespace fleetrun::ps {

/// Threads: any.
class ErrorFeedback {
 public:
  static constexpr std::size_t kBytesPerTable = std::size_t{256} << 20;

  explicit ErrorFeedback(std::size_t bytes_per_table = kBytesPerTable) : bytes_(bytes_per_table) {}

  /// Adds what is left of earlier ones to `gradients` ([keys, width], the keys distinct), encodes them to
  /// `out`, and keeps what that leaves.
  void encode_rows(Encoding encoding, std::uint32_t table, std::span<const std::uint64_t> keys,
                   std::span<float> gradients, std::byte* out);
  /// The same for the block of a dense table that is on one server.
  void encode_dense(Encoding encoding, std::uint32_t table, std::uint32_t server, std::span<float> gradients,
                    std::byte* out);
  /// Keys whose rest was lost.
  std::uint64_t displaced() const;

 private:
  // Places by hash, a power of two of them: more as keys come, until the memory is used up.
  struct Rests {
    std::vector<std::uint64_t> keys;
    std::vector<std::uint8_t> used;
    std::vector<float> rests;  // one row per place
    std::size_t count = 0;
  };
  Rests& rests_of(std::uint32_t table, std::size_t width, std::size_t more);
  bool keep(Rests& rests, std::uint64_t key, std::size_t width, const float* rest) const;

  std::size_t bytes_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::uint32_t, Rests> sparse_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<float>> dense_;
  std::uint64_t displaced_ = 0;
};

}  // namespace fleetrun::ps
