#include "ps/table/admission.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace fleetrun::ps;

namespace {

Admission by_count(Admission::Kind kind, std::uint32_t threshold) {
  Admission out;
  out.kind = kind;
  out.threshold = threshold;
  return out;
}

}  // namespace

TEST_CASE("exact counting admits a key with its threshold-th push, whatever others do") {
  Gatekeeper gate(by_count(Admission::Kind::count, 3));
  std::map<std::uint64_t, int> pushes;
  std::mt19937_64 random(5);
  for (int i = 0; i < 50000; ++i) {
    const std::uint64_t key = random() % 8000 * 0x10000;
    const bool admitted = gate.admits_push(key);
    REQUIRE(admitted == (++pushes[key] == 3));
    if (admitted) pushes[key] = 0;
  }
  std::uint64_t counting = 0;
  for (const auto& [key, count] : pushes) counting += count != 0 ? 1 : 0;
  CHECK(gate.counted() == counting);
  CHECK(!gate.admits_on_pull(1));
}

TEST_CASE("a threshold of one admits at once, and the keys 0 and 2^64 - 1 are counted like others") {
  CHECK(Gatekeeper(by_count(Admission::Kind::count, 1)).admits_push(7));
  CHECK(Gatekeeper(by_count(Admission::Kind::count_bloom, 1)).admits_push(7));
  Gatekeeper gate(by_count(Admission::Kind::count, 2));
  CHECK(!gate.admits_push(0));
  CHECK(!gate.admits_push(~0ull));
  CHECK(gate.admits_push(0));
  CHECK(gate.admits_push(~0ull));
  CHECK(gate.counted() == 0);
}

TEST_CASE("counting in cells is never late, rarely early, and takes the same memory for any number of keys") {
  Gatekeeper gate(by_count(Admission::Kind::count_bloom, 5));
  int early = 0;
  for (std::uint64_t key = 0; key < 10000; ++key) {
    for (int push = 1; push <= 4; ++push) early += gate.admits_push(key) ? 1 : 0;
  }
  CHECK(early < 200);
  for (std::uint64_t key = 0; key < 10000; ++key) REQUIRE(gate.admits_push(key));
  CHECK(gate.bytes() == std::size_t{256} << 10);
}

TEST_CASE("probability is a function of seed and key alone") {
  Admission half;
  half.kind = Admission::Kind::probability;
  half.probability = 0.5;
  half.seed = 3;
  Admission other = half;
  other.seed = 4;
  Gatekeeper gate(half);
  int admitted = 0;
  int alike = 0;
  for (std::uint64_t key = 0; key < 10000; ++key) {
    const bool admits = gate.admits_on_pull(key);
    REQUIRE(admits == gate.admits_push(key));
    REQUIRE(admits == Gatekeeper(half).admits_push(key));
    admitted += admits ? 1 : 0;
    alike += admits == Gatekeeper(other).admits_push(key) ? 1 : 0;
  }
  CHECK(admitted > 4700);
  CHECK(admitted < 5300);
  CHECK(alike > 4700);
  CHECK(alike < 5300);
  half.probability = 0.0;
  CHECK(!Gatekeeper(half).admits_push(1));
  half.probability = 1.0;
  CHECK(Gatekeeper(half).admits_push(1));
}

TEST_CASE("what was counted goes on where it is merged in, for the keys that belong there") {
  for (const auto kind : {Admission::Kind::count, Admission::Kind::count_bloom}) {
    Gatekeeper gate(by_count(kind, 3));
    for (std::uint64_t key = 0; key < 100; ++key) {
      gate.admits_push(key);
      gate.admits_push(key);
    }
    Gatekeeper next(by_count(kind, 3));
    next.merge(gate.words(), [](std::uint64_t key) { return key % 2 == 0; });
    for (std::uint64_t key = 0; key < 100; key += 2) REQUIRE(next.admits_push(key));
    if (kind == Admission::Kind::count) CHECK(!next.admits_push(1));
  }
}
