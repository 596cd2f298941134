// all_gather and reduce_scatter of counts that differ are a broadcast or a reduction from or to each rank;
// all_to_all is a send and a receive for each other rank; a barrier is an all-reduce of one word. int16,
// which NCCL lacks, is moved as bytes.
#include "collective/nccl/nccl_calls.h"

#include <array>
#include <optional>

namespace fleetrun::collective {
namespace {

constexpr std::array<std::optional<ncclDataType_t>, kDataTypes> kTypes = {
    ncclFloat32,  ncclFloat64, ncclFloat16, ncclBfloat16, ncclInt8,
    std::nullopt, ncclInt32,   ncclInt64,   ncclUint8};
/// In the order of Operation, up to those of bits, which it lacks.
constexpr std::array<ncclRedOp_t, 5> kReductions = {ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg};

std::optional<ncclDataType_t> nccl_type(DataType type) {
  return kTypes[static_cast<std::size_t>(type)];
}

bool reduces(CallKind kind) {
  return kind == CallKind::all_reduce || kind == CallKind::reduce || kind == CallKind::reduce_scatter;
}

/// A call's elements as NCCL counts them.
class Elements {
 public:
  explicit Elements(const Call& call)
      : type_(nccl_type(call.type).value_or(ncclUint8)),
        factor_(nccl_type(call.type) ? 1 : size_of(call.type)),
        size_(size_of(call.type)) {}

  ncclDataType_t type() const { return type_; }
  std::size_t count(std::size_t elements) const { return elements * factor_; }
  const void* at(const void* data, std::size_t element) const {
    return data ? static_cast<const std::byte*>(data) + element * size_ : nullptr;
  }
  void* at(void* data, std::size_t element) const {
    return data ? static_cast<std::byte*>(data) + element * size_ : nullptr;
  }

 private:
  ncclDataType_t type_;
  std::size_t factor_, size_;
};

std::size_t share(std::span<const std::size_t> counts, std::size_t each, int rank) {
  return counts.empty() ? each : counts[static_cast<std::size_t>(rank)];
}

class Group {
 public:
  Group(const NcclTarget& target, const Call& call)
      : target_(target), call_(call), elements_(call), what_(to_string(call)) {}

  void add(void* scratch) {
    switch (call_.kind) {
      case CallKind::all_reduce:
        return check(target_.nccl.ncclAllReduce(call_.input, call_.output, call_.count, elements_.type(),
                                                reduction(), target_.communicator, target_.stream));
      case CallKind::broadcast:
        return broadcast(
            target_.place.rank == call_.root ? call_.input : call_.output,
            target_.place.rank == call_.root && !call_.output ? const_cast<void*>(call_.input) : call_.output,
            call_.count, call_.root);
      case CallKind::reduce:
        return reduce(call_.input, call_.output, call_.count, call_.root);
      case CallKind::all_gather:
        return all_gather();
      case CallKind::reduce_scatter:
        return reduce_scatter();
      case CallKind::all_to_all:
        return all_to_all();
      case CallKind::send:
        return send(call_.input, call_.count, call_.root);
      case CallKind::receive:
        return receive(call_.output, call_.count, call_.root);
      case CallKind::barrier:
        return check(target_.nccl.ncclAllReduce(scratch, scratch, std::size_t{1}, ncclInt32, ncclSum,
                                                target_.communicator, target_.stream));
    }
  }

 private:
  void check(ncclResult_t result) const { target_.nccl.check(result, what_, target_.communicator); }
  ncclRedOp_t reduction() const { return kReductions[static_cast<std::size_t>(call_.operation)]; }

  void broadcast(const void* input, void* output, std::size_t count, int root) const {
    check(target_.nccl.ncclBroadcast(input, output, elements_.count(count), elements_.type(), root,
                                     target_.communicator, target_.stream));
  }
  void reduce(const void* input, void* output, std::size_t count, int root) const {
    check(target_.nccl.ncclReduce(input, output, count, elements_.type(), reduction(), root,
                                  target_.communicator, target_.stream));
  }
  void send(const void* input, std::size_t count, int to) const {
    check(target_.nccl.ncclSend(input, elements_.count(count), elements_.type(), to, target_.communicator,
                                target_.stream));
  }
  void receive(void* output, std::size_t count, int from) const {
    check(target_.nccl.ncclRecv(output, elements_.count(count), elements_.type(), from, target_.communicator,
                                target_.stream));
  }

  void all_gather() const {
    if (call_.counts.empty()) {
      return check(target_.nccl.ncclAllGather(call_.input, call_.output, elements_.count(call_.count),
                                              elements_.type(), target_.communicator, target_.stream));
    }
    std::size_t begin = 0;
    for (int rank = 0; rank < target_.place.size; ++rank) {
      const std::size_t count = share(call_.counts, 0, rank);
      void* const part = elements_.at(call_.output, begin);
      if (count > 0) broadcast(rank == target_.place.rank ? call_.input : part, part, count, rank);
      begin += count;
    }
  }

  void reduce_scatter() const {
    if (call_.counts.empty()) {
      return check(target_.nccl.ncclReduceScatter(call_.input, call_.output, call_.count, elements_.type(),
                                                  reduction(), target_.communicator, target_.stream));
    }
    std::size_t begin = 0;
    for (int rank = 0; rank < target_.place.size; ++rank) {
      const std::size_t count = share(call_.counts, 0, rank);
      if (count > 0) reduce(elements_.at(call_.input, begin), call_.output, count, rank);
      begin += count;
    }
  }

  void all_to_all() const {
    std::size_t sent = 0, received = 0;
    for (int rank = 0; rank < target_.place.size; ++rank) {
      const std::size_t to = share(call_.send_counts, call_.count, rank),
                        from = share(call_.counts, call_.count, rank);
      if (to > 0) send(elements_.at(call_.input, sent), to, rank);
      if (from > 0) receive(elements_.at(call_.output, received), from, rank);
      sent += to;
      received += from;
    }
  }

  const NcclTarget& target_;
  const Call& call_;
  Elements elements_;
  std::string what_;
};

}  // namespace

void check_for_nccl(const Call& call) {
  if (!reduces(call.kind)) return;
  if (is_of_bits(call.operation)) {
    throw Error(ErrorKind::config, to_string(call) + ": NCCL cannot combine bits",
                "make the call on arrays in the host's memory");
  }
  if (nccl_type(call.type)) return;
  throw Error(ErrorKind::config,
              to_string(call) + ": NCCL cannot reduce " + std::string(to_string(call.type)),
              "convert the values to int32");
}

void add_to_group(const NcclTarget& target, const Call& call, void* scratch) {
  Group(target, call).add(scratch);
}

}  // namespace fleetrun::collective
