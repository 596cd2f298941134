#include "ps/server/request_gate.h"

#include <doctest/doctest.h>

#include <future>
#include <optional>

using fleetrun::ps::RequestGate;

namespace {

constexpr std::chrono::milliseconds kNoTime{0};

}  // namespace

TEST_CASE("what comes while the gate is closed is done when it opens") {
  RequestGate gate;
  std::vector<int> done;
  const auto request = [&](int number) {
    const RequestGate::Pass pass(gate, [&done, number]() -> RequestGate::Parked {
      return [&done, number](bool goes_on) { done.push_back(goes_on ? number : -number); };
    });
    return static_cast<bool>(pass);
  };
  CHECK(request(1));
  CHECK(gate.close(kNoTime));
  CHECK_FALSE(gate.close(kNoTime));
  CHECK_FALSE(request(2));
  CHECK_FALSE(request(3));
  CHECK(done.empty());
  gate.open();
  CHECK(done == std::vector<int>{2, 3});
  CHECK(request(4));
  CHECK(gate.close(kNoTime));
  CHECK_FALSE(request(5));
  gate.end();
  CHECK_FALSE(request(6));
  CHECK(done == std::vector<int>{2, 3});
  gate.answer();
  CHECK_FALSE(request(7));
  CHECK(done == std::vector<int>{2, 3, -5, -6, -7});
}

TEST_CASE("the gate closes when nobody is inside, and stays open where somebody does not leave") {
  RequestGate gate;
  std::optional<RequestGate::Pass> pass(std::in_place, gate);
  CHECK(static_cast<bool>(*pass));
  CHECK_FALSE(gate.close(std::chrono::milliseconds(1)));
  CHECK(static_cast<bool>(RequestGate::Pass(gate)));
  auto closed = std::async(std::launch::async, [&] { return gate.close(std::chrono::minutes(1)); });
  pass.reset();
  CHECK(closed.get());
}

TEST_CASE("who waits at a closed gate goes in when it opens, and away when it ends") {
  RequestGate gate;
  CHECK(gate.close(kNoTime));
  auto first = std::async(std::launch::async, [&] { return static_cast<bool>(RequestGate::Pass(gate)); });
  gate.open();
  CHECK(first.get());
  CHECK(gate.close(std::chrono::minutes(1)));
  auto second = std::async(std::launch::async, [&] { return static_cast<bool>(RequestGate::Pass(gate)); });
  gate.end();
  CHECK_FALSE(second.get());
}
