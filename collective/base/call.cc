#include "collective/base/call.h"

#include <array>

#include "runtime/base/content_digest.h"
#include "runtime/base/error.h"

namespace fleetrun::collective {
namespace {

constexpr std::array<std::string_view, kDataTypes> kTypeNames = {
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8"};
constexpr std::array<std::size_t, kDataTypes> kTypeSizes = {4, 8, 2, 2, 1, 2, 4, 8, 1};
constexpr std::array<std::string_view, kOperations> kOperationNames = {"sum", "prod",    "min",    "max",
                                                                       "avg", "bit_and", "bit_or", "bit_xor"};
constexpr std::array<std::string_view, kCallKinds> kKindNames = {"all_reduce", "broadcast",      "reduce",
                                                                 "all_gather", "reduce_scatter", "all_to_all",
                                                                 "send",       "receive",        "barrier"};

bool has_operation(CallKind kind) {
  return kind == CallKind::all_reduce || kind == CallKind::reduce || kind == CallKind::reduce_scatter;
}

bool is_integer(DataType type) {
  return type >= DataType::int8;
}

bool has_root(CallKind kind) {
  return kind == CallKind::broadcast || kind == CallKind::reduce;
}

bool is_between_two(CallKind kind) {
  return kind == CallKind::send || kind == CallKind::receive;
}

std::string text_of(CallKind kind, std::uint64_t count, bool varies, DataType type, Operation operation,
                    int root) {
  std::string text(to_string(kind));
  if (kind == CallKind::barrier) return text;
  text += " of ";
  text += varies ? std::string("counts by rank,") : std::to_string(count);
  text += " " + std::string(to_string(type));
  if (has_operation(kind)) text += " (" + std::string(to_string(operation)) + ")";
  if (has_root(kind)) text += ", root " + std::to_string(root);
  return text;
}

void check_counts(const Call& call, std::span<const std::size_t> counts, std::string_view name, int size) {
  if (counts.empty() || counts.size() == static_cast<std::size_t>(size)) return;
  throw Error(ErrorKind::config, to_string(call) + ": " + std::to_string(counts.size()) + " " +
                                     std::string(name) + " for " + std::to_string(size) + " ranks");
}

std::size_t total(std::span<const std::size_t> counts, std::size_t each, int size) {
  if (counts.empty()) return each * static_cast<std::size_t>(size);
  std::size_t sum = 0;
  for (const std::size_t count : counts) sum += count;
  return sum;
}

std::size_t share(std::span<const std::size_t> counts, std::size_t each, int rank) {
  return counts.empty() ? each : counts[static_cast<std::size_t>(rank)];
}

struct Elements {
  std::size_t in = 0, out = 0;
};

/// What this rank hands in and gets.
Elements elements_of(const Call& call, int rank, int size) {
  const std::size_t all = total(call.counts, call.count, size), own = share(call.counts, call.count, rank);
  switch (call.kind) {
    case CallKind::all_reduce:
      return {call.count, call.count};
    case CallKind::broadcast:
      return rank == call.root ? Elements{call.count, 0} : Elements{0, call.count};
    case CallKind::reduce:
      return {call.count, rank == call.root ? call.count : 0};
    case CallKind::all_gather:
      return {own, all};
    case CallKind::reduce_scatter:
      return {all, own};
    case CallKind::all_to_all:
      return {total(call.send_counts, call.count, size), all};
    case CallKind::send:
      return {call.count, 0};
    case CallKind::receive:
      return {0, call.count};
    case CallKind::barrier:
      return {};
  }
  return {};
}

}  // namespace

std::size_t size_of(DataType type) noexcept {
  return kTypeSizes[static_cast<std::size_t>(type)];
}
std::string_view to_string(DataType type) noexcept {
  return kTypeNames[static_cast<std::size_t>(type)];
}
std::string_view to_string(Operation operation) noexcept {
  return kOperationNames[static_cast<std::size_t>(operation)];
}
std::string_view to_string(CallKind kind) noexcept {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::string to_string(const Call& call) {
  const bool varies = !call.counts.empty() || !call.send_counts.empty();
  return text_of(call.kind, call.count, varies, call.type, call.operation, call.root);
}

CallTag tag_of(const Call& call, std::uint64_t number) noexcept {
  CallTag tag{.number = number, .count = call.count, .kind = call.kind, .type = call.type};
  if (has_operation(call.kind)) tag.operation = call.operation;
  if (has_root(call.kind)) tag.root = call.root;
  if (call.kind == CallKind::receive) tag.kind = CallKind::send;
  if (call.kind == CallKind::all_to_all) {
    if (!call.counts.empty() || !call.send_counts.empty()) tag.count = 0;
  } else if (!call.counts.empty()) {
    tag.count = 0;
    ContentDigest digest;
    digest.add(std::as_bytes(call.counts));
    tag.counts_digest = digest.value() | 1;  // never that of a call without counts
  }
  return tag;
}

std::string to_string(const CallTag& tag) {
  const bool varies = tag.counts_digest != 0 || (tag.kind == CallKind::all_to_all && tag.count == 0);
  return text_of(tag.kind, tag.count, varies, tag.type, tag.operation, tag.root) + ", its call " +
         std::to_string(tag.number);
}

void check(const Call& call, int rank, int size) {
  if ((has_root(call.kind) || is_between_two(call.kind)) && (call.root < 0 || call.root >= size)) {
    throw Error(ErrorKind::config, to_string(call) + ": rank " + std::to_string(call.root) + " of " +
                                       std::to_string(size) + " ranks");
  }
  if (is_between_two(call.kind) && call.root == rank)
    throw Error(ErrorKind::config, to_string(call) + ": rank " + std::to_string(rank) + " to itself");
  check_counts(call, call.counts, "counts", size);
  check_counts(call, call.send_counts, "send counts", size);
  if (has_operation(call.kind) && is_of_bits(call.operation) && !is_integer(call.type))
    throw Error(ErrorKind::config, to_string(call) + ": only integers have bits to combine");
  const Elements elements = elements_of(call, rank, size);
  if (elements.in > 0 && call.input == nullptr)
    throw Error(ErrorKind::config, to_string(call) + ": no input buffer");
  if (elements.out > 0 && call.output == nullptr)
    throw Error(ErrorKind::config, to_string(call) + ": no output buffer");
}

}  // namespace fleetrun::collective
