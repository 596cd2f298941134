#include "collective/base/communicator.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace fleetrun::collective {
namespace {

/// Keeps the last call.
class Recorder : public Communicator {
 public:
  Recorder(int rank, int size) : place_{"test", rank, size} {}
  const Place& place() const noexcept override { return place_; }
  void run(const Call& call) override {
    check(call, place_.rank, place_.size);
    last = call;
  }
  std::unique_ptr<Work> start(const Call&) override { return nullptr; }
  void abort(const Error&) noexcept override {}

  Call last;

 private:
  Place place_;
};

template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

TEST_CASE("calls by name say what they are and how much of what") {
  Recorder two(1, 2);
  std::vector<float> small(4), large(8);
  const ConstBuffer input{small.data(), 4};
  const Buffer output{large.data(), 8}, same{small.data(), 4};
  all_reduce(two, same, Operation::max);
  CHECK(two.last.kind == CallKind::all_reduce);
  CHECK(two.last.operation == Operation::max);
  CHECK(two.last.input == two.last.output);
  all_gather(two, input, output);
  CHECK(two.last.count == 4);
  reduce_scatter(two, {large.data(), 8}, same, Operation::avg);
  CHECK(two.last.count == 4);
  all_to_all(two, {large.data(), 8}, output);
  CHECK(two.last.count == 4);
  reduce(two, input, {}, Operation::sum, 0);
  CHECK(two.last.output == nullptr);
  send(two, input, 0);
  CHECK(two.last.root == 0);
  barrier(two);
  CHECK(two.last.kind == CallKind::barrier);
}

TEST_CASE("buffers that do not fit each other are refused before anybody is asked") {
  Recorder two(1, 2);
  std::vector<float> values(8);
  const auto in = [&](std::size_t count) { return ConstBuffer{values.data(), count}; };
  const auto out = [&](std::size_t count) { return Buffer{values.data(), count}; };
  CHECK(refusal([&] { all_reduce(two, in(4), out(3), Operation::sum); }) ==
        "all_reduce: the output has 3 elements, 4 are needed");
  CHECK(refusal([&] {
          all_reduce(two, in(4), {values.data(), 4, DataType::int32}, Operation::sum);
        }) == "all_reduce: the input is of float32, the output of int32");
  CHECK(refusal([&] { all_gather(two, in(4), out(4)); }) ==
        "all_gather: the output has 4 elements, 8 are needed");
  const std::array<std::size_t, 2> counts = {3, 1};
  CHECK(refusal([&] { all_gather(two, in(3), out(4), counts); }) ==
        "all_gather: the input has 3 elements, 1 are needed");
  CHECK(refusal([&] { reduce_scatter(two, in(8), out(3), Operation::sum); }) ==
        "reduce_scatter: the input has 8 elements, 6 are needed");
  CHECK(refusal([&] { all_to_all(two, in(7), out(7)); }) ==
        "all_to_all: 7 elements cannot be split over 2 ranks");
  CHECK(two.last.count == 0);
}

}  // namespace
}  // namespace fleetrun::collective
