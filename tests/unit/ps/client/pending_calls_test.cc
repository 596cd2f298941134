#include "ps/client/pending_calls.h"

#include <doctest/doctest.h>

#include <optional>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::text_of;

namespace {

// What becomes of a call: answered, failed, or nothing yet.
struct Plan {
  bool ends = true;
  std::string error;
};

class FakeCall : public Call {
 public:
  explicit FakeCall(Plan plan) : plan_(std::move(plan)) {}
  bool has_ended() const override { return plan_.ends; }
  Reader result() override {
    if (!plan_.error.empty()) throw Error(ErrorKind::network, plan_.error);
    return Reader(std::as_bytes(std::span(&answer_, 1)));
  }

 private:
  Plan plan_;
  std::uint32_t answer_ = 5;
};

class FakeChannel : public Channel {
 public:
  explicit FakeChannel(Plan plan) : plan_(std::move(plan)) {}
  std::unique_ptr<Call> start(const wire::Header&, Message, std::shared_ptr<Endings> endings) override {
    if (plan_.ends) endings->ended(!plan_.error.empty());
    return std::make_unique<FakeCall>(plan_);
  }
  const std::string& name() const noexcept override { return plan_.error; }

 private:
  Plan plan_;
};

}  // namespace

TEST_CASE("answers are joined in the order of servers, then finished") {
  FakeChannel channel({true, ""});
  PendingCalls pending;
  std::vector<std::uint32_t> joined;
  pending.on_answer(
      [&](std::uint32_t server, Reader answer) {
        joined.push_back(server);
        CHECK(answer.value<std::uint32_t>() == 5);
      },
      [&] { joined.push_back(99); });
  for (const std::uint32_t server : {0u, 2u, 3u}) pending.start(channel, server, {}, Message());
  pending.wait();
  CHECK(joined == std::vector<std::uint32_t>{0, 2, 3, 99});
}

TEST_CASE("a failed call is reported though another one never ends") {
  FakeChannel silent({false, ""});
  FakeChannel failing({true, "server 1 is gone"});
  PendingCalls pending;
  pending.start(silent, 0, {}, Message());
  pending.start(failing, 1, {}, Message());
  CHECK(text_of([&] { pending.wait(); }) == "server 1 is gone");
}
