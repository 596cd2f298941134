#include "collective/base/communicator.h"

#include <string_view>

namespace fleetrun::collective {
namespace {

void expect(bool holds, CallKind kind, const std::string& what) {
  if (!holds) throw Error(ErrorKind::config, std::string(to_string(kind)) + ": " + what);
}

void expect_types(CallKind kind, ConstBuffer input, Buffer output) {
  expect(input.type == output.type, kind,
         "the input is of " + std::string(to_string(input.type)) + ", the output of " +
             std::string(to_string(output.type)));
}

void expect_count(CallKind kind, std::string_view which, std::size_t has, std::size_t needed) {
  expect(has == needed, kind,
         "the " + std::string(which) + " has " + std::to_string(has) + " elements, " +
             std::to_string(needed) + " are needed");
}

std::size_t sum(std::span<const std::size_t> counts) {
  std::size_t total = 0;
  for (const std::size_t count : counts) total += count;
  return total;
}

std::size_t ranks_of(const Communicator& communicator) {
  return static_cast<std::size_t>(communicator.place().size);
}

/// Of the rank that calls; checked by check() when there are too few.
std::size_t own_of(const Communicator& communicator, std::span<const std::size_t> counts) {
  const auto rank = static_cast<std::size_t>(communicator.place().rank);
  return rank < counts.size() ? counts[rank] : 0;
}

Call call_of(CallKind kind, ConstBuffer input, Buffer output, std::size_t count) {
  expect_types(kind, input, output);
  return {.kind = kind, .type = input.type, .input = input.data, .output = output.data, .count = count};
}

}  // namespace

void all_reduce(Communicator& communicator, ConstBuffer input, Buffer output, Operation operation) {
  expect_count(CallKind::all_reduce, "output", output.count, input.count);
  Call call = call_of(CallKind::all_reduce, input, output, input.count);
  call.operation = operation;
  communicator.run(call);
}

void all_reduce(Communicator& communicator, Buffer values, Operation operation) {
  all_reduce(communicator, {values.data, values.count, values.type}, values, operation);
}

void broadcast(Communicator& communicator, Buffer values, int root) {
  communicator.run({.kind = CallKind::broadcast,
                    .type = values.type,
                    .input = values.data,
                    .output = values.data,
                    .count = values.count,
                    .root = root});
}

void reduce(Communicator& communicator, ConstBuffer input, Buffer output, Operation operation, int root) {
  if (communicator.place().rank == root)
    expect_count(CallKind::reduce, "output", output.count, input.count);
  else
    output = {nullptr, 0, input.type};
  Call call = call_of(CallKind::reduce, input, output, input.count);
  call.operation = operation;
  call.root = root;
  communicator.run(call);
}

void all_gather(Communicator& communicator, ConstBuffer input, Buffer output) {
  expect_count(CallKind::all_gather, "output", output.count, input.count * ranks_of(communicator));
  communicator.run(call_of(CallKind::all_gather, input, output, input.count));
}

void all_gather(Communicator& communicator, ConstBuffer input, Buffer output,
                std::span<const std::size_t> counts) {
  expect_count(CallKind::all_gather, "input", input.count, own_of(communicator, counts));
  expect_count(CallKind::all_gather, "output", output.count, sum(counts));
  Call call = call_of(CallKind::all_gather, input, output, 0);
  call.counts = counts;
  communicator.run(call);
}

void reduce_scatter(Communicator& communicator, ConstBuffer input, Buffer output, Operation operation) {
  expect_count(CallKind::reduce_scatter, "input", input.count, output.count * ranks_of(communicator));
  Call call = call_of(CallKind::reduce_scatter, input, output, output.count);
  call.operation = operation;
  communicator.run(call);
}

void reduce_scatter(Communicator& communicator, ConstBuffer input, Buffer output, Operation operation,
                    std::span<const std::size_t> counts) {
  expect_count(CallKind::reduce_scatter, "input", input.count, sum(counts));
  expect_count(CallKind::reduce_scatter, "output", output.count, own_of(communicator, counts));
  Call call = call_of(CallKind::reduce_scatter, input, output, 0);
  call.operation = operation;
  call.counts = counts;
  communicator.run(call);
}

void all_to_all(Communicator& communicator, ConstBuffer input, Buffer output) {
  const std::size_t ranks = ranks_of(communicator);
  expect_count(CallKind::all_to_all, "output", output.count, input.count);
  expect(input.count % ranks == 0, CallKind::all_to_all,
         std::to_string(input.count) + " elements cannot be split over " + std::to_string(ranks) + " ranks");
  communicator.run(call_of(CallKind::all_to_all, input, output, input.count / ranks));
}

void all_to_all(Communicator& communicator, ConstBuffer input, std::span<const std::size_t> send_counts,
                Buffer output, std::span<const std::size_t> counts) {
  expect_count(CallKind::all_to_all, "input", input.count, sum(send_counts));
  expect_count(CallKind::all_to_all, "output", output.count, sum(counts));
  Call call = call_of(CallKind::all_to_all, input, output, 0);
  call.send_counts = send_counts;
  call.counts = counts;
  communicator.run(call);
}

void send(Communicator& communicator, ConstBuffer values, int to) {
  communicator.run(
      {.kind = CallKind::send, .type = values.type, .input = values.data, .count = values.count, .root = to});
}

void receive(Communicator& communicator, Buffer values, int from) {
  communicator.run({.kind = CallKind::receive,
                    .type = values.type,
                    .output = values.data,
                    .count = values.count,
                    .root = from});
}

void barrier(Communicator& communicator) {
  communicator.run({.kind = CallKind::barrier});
}

}  // namespace fleetrun::collective
