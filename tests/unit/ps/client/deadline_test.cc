#include <doctest/doctest.h>

#include "ps/client/client_environment.h"
#include "ps/client/pending_calls.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"

using namespace fleetrun::ps;
using fleetrun::Environ;
using fleetrun::Error;
using fleetrun::ErrorKind;

namespace {

// Answers nothing, or all at once.
class FakeChannel : public Channel {
 public:
  FakeChannel(std::string name, bool answers) : name_(std::move(name)), answers_(answers) {}

  std::unique_ptr<Call> start(const wire::Header&, Message, std::shared_ptr<Endings> endings) override {
    if (answers_) endings->ended(false);
    return std::make_unique<FakeCall>(answers_);
  }
  const std::string& name() const noexcept override { return name_; }

 private:
  struct FakeCall : Call {
    explicit FakeCall(bool answered) : ended(answered) {}
    bool has_ended() const override { return ended; }
    Reader result() override { return {}; }
    bool ended;
  };
  std::string name_;
  bool answers_;
};

}  // namespace

TEST_CASE("deadline: the server that does not answer is named, and the call") {
  FakeChannel good("server 0 at a", true), silent("server 1 at b", false);
  PendingCalls calls(std::chrono::milliseconds(1));
  calls.start(good, 0, {wire::Method::pull}, {});
  calls.start(silent, 1, {wire::Method::pull}, {});
  try {
    calls.wait();
    FAIL("it ended");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::timeout);
    CHECK(std::string(error.what()) == "no answer to a pull within 1 ms from server 1 at b");
  }
}

TEST_CASE("deadline: answers in time, and calls that nobody waits for") {
  FakeChannel good("server 0", true), silent("server 1", false);
  PendingCalls calls(std::chrono::hours(1));
  calls.start(good, 0, {wire::Method::push}, {});
  CHECK_NOTHROW(calls.wait());
  PendingCalls dropped(std::chrono::milliseconds(1));
  dropped.start(silent, 0, {wire::Method::push}, {});
}

TEST_CASE("client environment: encodings and deadlines") {
  ClientOptions options;
  read_environment(Environ{}, options);
  CHECK(options.deadlines.data.count() == 0);
  CHECK(options.encodings.rows == Encoding::float32);
  read_environment(Environ{{"FLEETRUN_PS_DEADLINE", "1.5"}, {"FLEETRUN_PS_ROWS", "bf16"}}, options);
  CHECK(options.deadlines.data.count() == 1500);
  CHECK(options.encodings.rows == Encoding::bfloat16);
  CHECK(options.tell_waits.count() == 60000);
  read_environment(Environ{{"FLEETRUN_PS_WAIT_WARNING", "0"}}, options);
  CHECK(options.tell_waits.count() == 0);
  for (const char* wrong : {"x", "-1", "1s", "1e9", "nan", "inf", ""})
    CHECK_THROWS_AS(read_environment(Environ{{"FLEETRUN_PS_DEADLINE", wrong}}, options), Error);
}
