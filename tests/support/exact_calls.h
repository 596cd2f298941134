// Collective calls whose results are known exactly, whatever the order in which ranks are added:
// small whole numbers.
//
// wrong_elements() makes a call on one rank; all ranks of the communicator make it at the same time.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/exact_elements.h"

namespace fleetrun::tests {

struct ExactCall {
  CallKind kind = CallKind::all_reduce;
  DataType type = DataType::float32;
  Operation operation = Operation::sum;
  std::size_t count = 0;
  bool in_place = false;
  bool varies = false;  // counts by rank
};

inline std::string to_string(const ExactCall& call) {
  return std::string(to_string(call.kind)) + " of " + std::to_string(call.count) + " " +
         std::string(to_string(call.type)) + " (" + std::string(to_string(call.operation)) + ")" +
         (call.in_place ? ", in place" : "") + (call.varies ? ", counts by rank" : "");
}

/// The reduction of element `i` over all ranks, before avg divides.
inline int reduced(Operation operation, int ranks, std::size_t i) {
  int result = given(operation, 0, i);
  for (int r = 1; r < ranks; ++r) {
    const int next = given(operation, r, i);
    if (operation == Operation::prod) result *= next;
    if (operation == Operation::sum || operation == Operation::avg) result += next;
    if (operation == Operation::min) result = std::min(result, next);
    if (operation == Operation::max) result = std::max(result, next);
    if (operation == Operation::bit_and) result &= next;
    if (operation == Operation::bit_or) result |= next;
    if (operation == Operation::bit_xor) result ^= next;
  }
  return result;
}

namespace exact {

inline std::vector<std::size_t> counts_of(const ExactCall& call, int ranks) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < ranks; ++r)
    counts.push_back(call.varies ? call.count * static_cast<std::size_t>(r % 3) / 2 : call.count);
  return counts;
}

inline std::size_t sum_until(const std::vector<std::size_t>& counts, int end) {
  std::size_t sum = 0;
  for (int r = 0; r < end; ++r) sum += counts[static_cast<std::size_t>(r)];
  return sum;
}

/// What `rank` gives, as a function of the element.
inline auto given_by(const ExactCall& call, int rank) {
  return [operation = call.operation, rank](std::size_t i) { return given(operation, rank, i); };
}

/// What comes of element `from` and those behind it.
inline auto result_of(const ExactCall& call, int ranks, std::size_t from) {
  return [operation = call.operation, ranks, from](std::size_t i) {
    return reduced(operation, ranks, from + i);
  };
}

inline int divisor_of(const ExactCall& call, int ranks) {
  return call.operation == Operation::avg ? ranks : 1;
}

inline std::size_t reduce_like(Communicator& communicator, const ExactCall& call) {
  const auto [group, rank, ranks] = communicator.place();
  const int root = ranks - 1;
  Elements input(call.type, call.count), other(call.type, call.count);
  input.fill(0, call.count, given_by(call, rank));
  Elements& output = call.in_place ? input : other;
  if (call.kind == CallKind::all_reduce)
    all_reduce(communicator, input.input(), output.buffer(), call.operation);
  else
    reduce(communicator, input.input(), output.buffer(), call.operation, root);
  std::size_t wrong = input.overrun() + other.overrun();
  if (call.kind == CallKind::all_reduce || rank == root)
    wrong += output.differing(0, call.count, result_of(call, ranks, 0), divisor_of(call, ranks));
  if (!call.in_place) wrong += input.differing(0, call.count, given_by(call, rank));
  return wrong;
}

inline std::size_t broadcast_like(Communicator& communicator, const ExactCall& call) {
  const auto [group, rank, ranks] = communicator.place();
  const int root = ranks / 2;
  Elements values(call.type, call.count);
  if (rank == root) values.fill(0, call.count, given_by(call, root));
  broadcast(communicator, values.buffer(), root);
  return values.overrun() + values.differing(0, call.count, given_by(call, root));
}

inline std::size_t gather_like(Communicator& communicator, const ExactCall& call) {
  const auto [group, rank, ranks] = communicator.place();
  const std::vector<std::size_t> counts = counts_of(call, ranks);
  const std::size_t own = counts[static_cast<std::size_t>(rank)], at = sum_until(counts, rank);
  Elements input(call.type, own), output(call.type, sum_until(counts, ranks));
  input.fill(0, own, given_by(call, rank));
  if (call.in_place) output.fill(at, own, given_by(call, rank));
  ConstBuffer from = input.input();
  if (call.in_place) from.data = output.at(at);
  if (call.varies)
    all_gather(communicator, from, output.buffer(), counts);
  else
    all_gather(communicator, from, output.buffer());
  std::size_t wrong = input.overrun() + output.overrun();
  for (int r = 0; r < ranks; ++r)
    wrong += output.differing(sum_until(counts, r), counts[static_cast<std::size_t>(r)], given_by(call, r));
  return wrong;
}

inline std::size_t scatter_like(Communicator& communicator, const ExactCall& call) {
  const auto [group, rank, ranks] = communicator.place();
  const std::vector<std::size_t> counts = counts_of(call, ranks);
  const std::size_t all = sum_until(counts, ranks), own = counts[static_cast<std::size_t>(rank)];
  const std::size_t at = sum_until(counts, rank);
  Elements input(call.type, all), other(call.type, own);
  input.fill(0, all, given_by(call, rank));
  Buffer to = other.buffer();
  if (call.in_place) to.data = input.at(at);
  if (call.varies)
    reduce_scatter(communicator, input.input(), to, call.operation, counts);
  else
    reduce_scatter(communicator, input.input(), to, call.operation);
  Elements& output = call.in_place ? input : other;
  return input.overrun() + other.overrun() +
         output.differing(call.in_place ? at : 0, own, result_of(call, ranks, at), divisor_of(call, ranks));
}

/// Rank a sends `count` * ((a + b) % 3) / 2 elements to rank b when counts vary.
inline std::size_t exchange_like(Communicator& communicator, const ExactCall& call) {
  const auto [group, rank, ranks] = communicator.place();
  std::vector<std::size_t> sends, gets;
  for (int r = 0; r < ranks; ++r) {
    const auto each = call.varies ? call.count * static_cast<std::size_t>((rank + r) % 3) / 2 : call.count;
    sends.push_back(each);
    gets.push_back(each);
  }
  Elements input(call.type, sum_until(sends, ranks)), other(call.type, sum_until(gets, ranks));
  for (int r = 0; r < ranks; ++r)
    input.fill(sum_until(sends, r), sends[static_cast<std::size_t>(r)], given_by(call, rank * 3 + r));
  Elements& output = call.in_place ? input : other;
  if (call.varies)
    all_to_all(communicator, input.input(), sends, output.buffer(), gets);
  else
    all_to_all(communicator, input.input(), output.buffer());
  std::size_t wrong = input.overrun() + other.overrun();
  for (int r = 0; r < ranks; ++r)
    wrong +=
        output.differing(sum_until(gets, r), gets[static_cast<std::size_t>(r)], given_by(call, r * 3 + rank));
  return wrong;
}

/// Around a ring: even ranks send first, odd ones receive first;
/// of an odd number of ranks the last receives first.
inline std::size_t message_like(Communicator& communicator, const ExactCall& call) {
  const auto [group, rank, ranks] = communicator.place();
  if (ranks == 1) return 0;
  const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
  Elements input(call.type, call.count), output(call.type, call.count);
  input.fill(0, call.count, given_by(call, rank));
  const bool receives_first = rank % 2 == 1 || rank == ranks - 1;
  if (receives_first) receive(communicator, output.buffer(), from);
  send(communicator, input.input(), to);
  if (!receives_first) receive(communicator, output.buffer(), from);
  return input.overrun() + output.overrun() + output.differing(0, call.count, given_by(call, from));
}

}  // namespace exact

/// Elements of this rank's result that are not what they must be, and bytes beside it that were written.
inline std::size_t wrong_elements(Communicator& communicator, const ExactCall& call) {
  switch (call.kind) {
    case CallKind::all_reduce:
    case CallKind::reduce:
      return exact::reduce_like(communicator, call);
    case CallKind::broadcast:
      return exact::broadcast_like(communicator, call);
    case CallKind::all_gather:
      return exact::gather_like(communicator, call);
    case CallKind::reduce_scatter:
      return exact::scatter_like(communicator, call);
    case CallKind::all_to_all:
      return exact::exchange_like(communicator, call);
    case CallKind::send:
    case CallKind::receive:
      return exact::message_like(communicator, call);
    case CallKind::barrier:
      barrier(communicator);
      return 0;
  }
  return 1;
}

/// Every kind for `count` elements of `type`: with each operation where there is one;
/// in place and out; counts by rank.
inline std::vector<ExactCall> exact_calls(DataType type, std::size_t count) {
  std::vector<ExactCall> calls;
  for (const bool in_place : {false, true}) {
    for (const Operation operation : kOperationsOf) {
      if (!combines(operation, type)) continue;
      calls.push_back({CallKind::all_reduce, type, operation, count, in_place});
      calls.push_back({CallKind::reduce, type, operation, count, in_place});
      calls.push_back({CallKind::reduce_scatter, type, operation, count, in_place});
    }
    for (const bool varies : {false, true}) {
      calls.push_back({CallKind::all_gather, type, Operation::sum, count, in_place, varies});
      calls.push_back({CallKind::all_to_all, type, Operation::sum, count, in_place, varies});
    }
    calls.push_back({CallKind::reduce_scatter, type, Operation::sum, count, in_place, true});
  }
  calls.push_back({CallKind::broadcast, type, Operation::sum, count});
  calls.push_back({CallKind::send, type, Operation::sum, count});
  calls.push_back({CallKind::barrier, type, Operation::sum, count});
  return calls;
}

}  // namespace fleetrun::tests
