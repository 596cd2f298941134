// One collective call, as a value: what every rank of a communicator asks for in the same order.
//
//   kind            input                      output                                   counts
//   all_reduce      count                      count                                    –
//   broadcast       count (root's alone)       count (the root's: its input)            –
//   reduce          count                      count (root's alone)                     –
//   all_gather      counts[rank]               the ranks' inputs behind each other      by rank (1)
//   reduce_scatter  the ranks' shares          counts[rank]: this rank's reduced share  by rank (1)
//   all_to_all      send_counts[r] for rank r  counts[r] from rank r                    by rank (1), both
//   send, receive   count / –                  – / count                                – (2)
//   barrier         –                          –                                        –
//
// (1) empty: `count` of each rank. (2) `root` is the other rank.
//
// Buffers are contiguous elements of `type`, of any alignment. `output` may be `input` (in place) where both
// have the same count; for all_gather and reduce_scatter in place means: the rank's own share of the large
// buffer. Otherwise they do not overlap. The caller keeps them, and what counts refer to,
// until the call has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fleetrun::collective {

enum class DataType : std::uint8_t { float32, float64, float16, bfloat16, int8, int16, int32, int64, uint8 };
inline constexpr std::size_t kDataTypes = 9;
/// Bytes of one element.
std::size_t size_of(DataType type) noexcept;
std::string_view to_string(DataType type) noexcept;

/// avg is the sum divided by the number of ranks, once, at the end; of integers rounded towards zero. float16
/// and bfloat16 are summed in float32 and rounded to nearest even once per step of the algorithm; a mean of
/// float16 is finite where the inputs are. Integers wrap around. min and max of a NaN and a number are a NaN.
/// bit_and, bit_or and bit_xor are of integers only.
enum class Operation : std::uint8_t { sum, prod, min, max, avg, bit_and, bit_or, bit_xor };
inline constexpr std::size_t kOperations = 8;
std::string_view to_string(Operation operation) noexcept;

enum class CallKind : std::uint8_t {
  all_reduce,
  broadcast,
  reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send,
  receive,
  barrier,
};
inline constexpr std::size_t kCallKinds = 9;
std::string_view to_string(CallKind kind) noexcept;

struct Call {
  CallKind kind = CallKind::barrier;
  DataType type = DataType::float32;
  Operation operation = Operation::sum;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;  // elements, as the table says
  std::span<const std::size_t> counts = {};
  std::span<const std::size_t> send_counts = {};
  int root = 0;
  /// Of buffers on a GPU: the cudaStream_t whose work of before the call comes before it;
  /// nullptr: the communicator's own choice.
  void* stream = nullptr;

  std::size_t bytes() const noexcept { return count * size_of(type); }
};

/// What only integers have.
constexpr bool is_of_bits(Operation operation) noexcept {
  return operation >= Operation::bit_and;
}

/// A mean whose sum its type may not hold: 60000 and 60000.
constexpr bool is_half_mean(const Call& call) noexcept {
  return call.operation == Operation::avg && call.type == DataType::float16;
}

/// "all_reduce of 4 float32 (sum)", for messages.
std::string to_string(const Call& call);

/// What all ranks have to agree on, in 32 bytes that two ranks can compare; all_to_all's counts differ by
/// rank and are not in it, and the two ends of send and receive are the same kind.
struct CallTag {
  std::uint64_t number = 0;  // calls of this communicator before this one
  std::uint64_t count = 0;
  std::uint64_t counts_digest = 0;  // of counts, where the kind has them and all ranks pass the same
  CallKind kind = CallKind::barrier;
  DataType type = DataType::float32;
  Operation operation = Operation::sum;
  std::uint8_t unused = 0;
  std::int32_t root = 0;

  bool operator==(const CallTag&) const = default;
};
static_assert(sizeof(CallTag) == 32);
CallTag tag_of(const Call& call, std::uint64_t number) noexcept;
/// "all_reduce of 4 float32 (sum), its call 7"
std::string to_string(const CallTag& tag);

/// Throws: Error(config) for counts of a number other than `size`, a root out of range, bits of what is no
/// integer, or no buffer where there are elements. What the ranks disagree on is found when they meet.
void check(const Call& call, int rank, int size);

}  // namespace fleetrun::collective
