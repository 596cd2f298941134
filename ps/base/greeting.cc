#include "ps/base/greeting.h"

#include <span>

#include "ps/base/wire.h"

namespace fleetrun::ps::wire {

static_assert(sizeof(HelloAnswer) == 56 && sizeof(BeginEpoch) == 32);

Message greet(const Greeting& greeting) {
  const std::span steps(greeting.steps);
  const std::span epochs(greeting.epochs);
  Message out(sizeof(HelloAnswer) + sizeof(std::uint64_t) + steps.size_bytes() + epochs.size_bytes());
  Writer writer(out);
  writer.value(static_cast<const HelloAnswer&>(greeting));
  writer.value(std::uint64_t{steps.size()});
  writer.array(steps);
  writer.array(epochs);
  return out;
}

Greeting read_greeting(Reader answer) {
  Greeting out{answer.value<HelloAnswer>()};
  Message copies[2];
  const auto steps = answer.array<std::uint64_t>(answer.value<std::uint64_t>(), copies[0]);
  out.steps.assign(steps.begin(), steps.end());
  const auto epochs = answer.array<EpochMark>(answer.remaining() / sizeof(EpochMark), copies[1]);
  out.epochs.assign(epochs.begin(), epochs.end());
  expect_end(answer);
  return out;
}

}  // namespace fleetrun::ps::wire
