#include "collective/base/call.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace fleetrun::collective {
namespace {

std::string refusal(const Call& call, int rank, int size) {
  try {
    check(call, rank, size);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

TEST_CASE("types, operations and kinds have names and sizes") {
  CHECK(size_of(DataType::float32) == 4);
  CHECK(size_of(DataType::float64) == 8);
  CHECK(size_of(DataType::bfloat16) == 2);
  CHECK(size_of(DataType::uint8) == 1);
  CHECK(to_string(DataType::bfloat16) == "bfloat16");
  CHECK(to_string(DataType::uint8) == "uint8");
  CHECK(to_string(Operation::avg) == "avg");
  CHECK(to_string(Operation::bit_xor) == "bit_xor");
  CHECK(to_string(CallKind::barrier) == "barrier");
}

TEST_CASE("a call is told in words") {
  CHECK(to_string(Call{.kind = CallKind::all_reduce, .count = 4}) == "all_reduce of 4 float32 (sum)");
  CHECK(to_string(Call{.kind = CallKind::broadcast, .type = DataType::int8, .count = 3, .root = 2}) ==
        "broadcast of 3 int8, root 2");
  CHECK(to_string(Call{}) == "barrier");
  const std::array<std::size_t, 2> counts = {1, 2};
  CHECK(to_string(Call{.kind = CallKind::all_gather, .counts = counts}) ==
        "all_gather of counts by rank, float32");
  CHECK(to_string(tag_of({.kind = CallKind::all_reduce, .count = 4}, 7)) ==
        "all_reduce of 4 float32 (sum), its call 7");
}

TEST_CASE("tags differ by all that ranks have to agree on, and by nothing else") {
  const Call call{.kind = CallKind::all_reduce, .count = 4};
  CallTag tag = tag_of(call, 1);
  CHECK(tag ==
        tag_of({.kind = CallKind::all_reduce, .input = &tag, .output = &tag, .count = 4, .root = 3}, 1));
  CHECK(tag != tag_of(call, 2));
  CHECK(tag != tag_of({.kind = CallKind::all_reduce, .count = 5}, 1));
  CHECK(tag != tag_of({.kind = CallKind::all_reduce, .type = DataType::int32, .count = 4}, 1));
  CHECK(tag != tag_of({.kind = CallKind::all_reduce, .operation = Operation::max, .count = 4}, 1));
  CHECK(tag != tag_of({.kind = CallKind::reduce, .count = 4}, 1));
  CHECK(tag_of({.kind = CallKind::reduce, .count = 4}, 1) !=
        tag_of({.kind = CallKind::reduce, .count = 4, .root = 1}, 1));
  CHECK(tag_of({.kind = CallKind::send, .count = 4, .root = 1}, 1) ==
        tag_of({.kind = CallKind::receive, .count = 4, .root = 0}, 1));
}

TEST_CASE("counts by rank are in a tag where all ranks pass the same") {
  const std::array<std::size_t, 2> counts = {1, 2}, others = {2, 1};
  const auto tag = [](CallKind kind, std::span<const std::size_t> by_rank) {
    return tag_of({.kind = kind, .counts = by_rank}, 0);
  };
  CHECK(tag(CallKind::all_gather, counts) == tag(CallKind::all_gather, counts));
  CHECK(tag(CallKind::all_gather, counts) != tag(CallKind::all_gather, others));
  CHECK(tag(CallKind::all_gather, counts) != tag(CallKind::all_gather, {}));
  CHECK(tag(CallKind::all_to_all, counts) == tag(CallKind::all_to_all, others));
}

TEST_CASE("arguments that cannot be are refused") {
  std::vector<float> values(8);
  const std::array<std::size_t, 3> three = {1, 1, 1};
  const Call whole{.kind = CallKind::all_reduce, .input = values.data(), .output = values.data(), .count = 8};
  CHECK(refusal(whole, 0, 2).empty());
  CHECK(refusal({.kind = CallKind::all_reduce, .count = 8}, 0, 2) ==
        "all_reduce of 8 float32 (sum): no input buffer");
  CHECK(refusal({.kind = CallKind::all_reduce, .count = 0}, 0, 2).empty());
  Call bits = whole;
  bits.operation = Operation::bit_or;
  CHECK(refusal(bits, 0, 2) == "all_reduce of 8 float32 (bit_or): only integers have bits to combine");
  bits.type = DataType::int32;
  CHECK(refusal(bits, 0, 2).empty());
  CHECK(refusal({.kind = CallKind::all_reduce, .input = values.data(), .count = 8}, 0, 2) ==
        "all_reduce of 8 float32 (sum): no output buffer");
  CHECK(refusal({.kind = CallKind::reduce, .input = values.data(), .count = 8, .root = 1}, 0, 2).empty());
  CHECK(refusal({.kind = CallKind::reduce, .input = values.data(), .count = 8, .root = 1}, 1, 2) ==
        "reduce of 8 float32 (sum), root 1: no output buffer");
  CHECK(refusal({.kind = CallKind::broadcast, .input = values.data(), .count = 8, .root = 2}, 0, 2) ==
        "broadcast of 8 float32, root 2: rank 2 of 2 ranks");
  CHECK(refusal({.kind = CallKind::send, .input = values.data(), .count = 8, .root = 0}, 0, 2) ==
        "send of 8 float32: rank 0 to itself");
  CHECK(refusal(
            {.kind = CallKind::all_gather, .input = values.data(), .output = values.data(), .counts = three},
            0, 2) == "all_gather of counts by rank, float32: 3 counts for 2 ranks");
}

}  // namespace
}  // namespace fleetrun::collective
