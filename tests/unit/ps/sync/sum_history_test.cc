#include "ps/sync/sum_history.h"

#include <doctest/doctest.h>

#include <vector>

#include "runtime/base/error.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;

namespace {

SumHistory::Sum sum_of(std::size_t bytes, std::uint64_t number, std::uint32_t trainers = 2) {
  SumHistory::Sum sum{std::make_shared<Outcome>(Message(bytes)), {}};
  for (std::uint32_t trainer = 0; trainer < trainers; ++trainer) sum.parts[trainer] = {number, bytes / 8};
  return sum;
}

}  // namespace

TEST_CASE("sums are found by trainer and number, until they are too many or too large") {
  SumHistory history;
  for (std::uint64_t number = 1; number <= 3; ++number) history.add(sum_of(8 * number, number));
  REQUIRE(history.find(1, 2) != nullptr);
  CHECK(std::get<Message>(*history.find(1, 2)->outcome).size() == 16);
  CHECK(history.find(1, 4) == nullptr);
  CHECK(history.find(2, 1) == nullptr);
  history.forget(1);
  CHECK(history.find(1, 2) == nullptr);
  CHECK(history.find(0, 2) != nullptr);
  history.add(sum_of(SumHistory::kMax - 1200, 4));
  CHECK(history.find(0, 2) == nullptr);
  CHECK(history.find(0, 3) != nullptr);
  CHECK(history.find(0, 4) != nullptr);
  history.add(sum_of(SumHistory::kMax + 1, 5));
  CHECK(history.find(0, 5) == nullptr);
  for (std::uint64_t number = 6; number < 100'000; ++number) history.add(sum_of(8, number));
  CHECK(history.find(0, 99'999) != nullptr);
  CHECK(history.find(0, 6) == nullptr);
}

TEST_CASE("what was written is read again, errors too") {
  SumHistory history;
  history.add(sum_of(24, 1));
  history.add({std::make_shared<Outcome>(Error(ErrorKind::config, "they differ", "agree")), {{1, {2, 3}}}});
  Bytes bytes;
  history.write(bytes);
  SumHistory again;
  again.add(sum_of(8, 9));
  Reader reader(bytes.bytes());
  again.read(reader);
  CHECK(reader.remaining() == 0);
  CHECK(again.find(0, 9) == nullptr);
  CHECK(again.find(0, 1)->parts.at(1).values == 3);
  const Error error = std::get<Error>(*again.find(1, 2)->outcome);
  CHECK(std::string(error.what()) == "they differ");
  CHECK(error.hint() == "agree");
}
