#include "ps/base/push_history.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;

TEST_CASE("numbers in any order are done once noted, and the prefix closes up") {
  std::vector<std::uint64_t> numbers(500);
  std::iota(numbers.begin(), numbers.end(), 1);
  std::mt19937 random(7);
  std::shuffle(numbers.begin(), numbers.end(), random);
  PushHistory history;
  for (const std::uint64_t number : numbers) {
    REQUIRE_FALSE(history.is_done(number));
    history.note(number);
    REQUIRE(history.is_done(number));
    history.note(number);
  }
  CHECK(history.prefix() == 500);
  CHECK(history.highest() == 500);
  CHECK(history.beyond().empty());
  CHECK_FALSE(history.is_done(501));
}

TEST_CASE("a refused change is done, and says why again") {
  PushHistory history;
  history.note(1);
  history.refuse(2, Error(ErrorKind::data, "a gradient is NaN"));
  CHECK(history.prefix() == 2);
  REQUIRE(history.refusal(2));
  CHECK(std::string(history.refusal(2)->what()) == "a gradient is NaN");
  CHECK_FALSE(history.refusal(1));
  for (std::uint64_t number = 3; number < 300; ++number) history.refuse(number, Error(ErrorKind::data, "no"));
  CHECK_FALSE(history.refusal(2));
  CHECK(history.is_done(2));
  CHECK(history.refusal(299));
}

TEST_CASE("a number that never comes is given up after a window, so that memory is bounded") {
  PushHistory history;
  for (std::uint64_t number = 2; number <= PushHistory::kWindow + 1; ++number) history.note(number);
  CHECK(history.prefix() == PushHistory::kWindow + 1);
  PushHistory even;
  for (std::uint64_t number = 2; number <= 4 * PushHistory::kWindow; number += 2) even.note(number);
  CHECK(even.beyond().size() <= PushHistory::kWindow);
  CHECK(even.prefix() >= 3 * PushHistory::kWindow - 1);
}

TEST_CASE("what was written down is restored") {
  PushHistory history;
  for (const std::uint64_t number : {1, 2, 3, 5, 9}) history.note(number);
  const PushHistory again = PushHistory::restore(history.prefix(), history.beyond());
  CHECK(again.prefix() == 3);
  CHECK(again.highest() == 9);
  CHECK(again.is_done(5));
  CHECK_FALSE(again.is_done(4));
}

TEST_CASE("the highest numbers there are count like others: what is done stays done") {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  PushHistory history = PushHistory::restore(kLast - 3, {});
  history.note(kLast - 1);
  CHECK(history.prefix() == kLast - 3);
  history.note(kLast - 2);
  CHECK(history.prefix() == kLast - 1);
  history.note(kLast);
  CHECK(history.prefix() == kLast);
  CHECK(history.beyond().empty());
  CHECK(PushHistory::restore(kLast, {1, kLast}).beyond().empty());
}
