#include "launcher/failure/root_cause.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <random>

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

constexpr std::int64_t kMs = 1'000'000;

Ending exited(std::size_t index, std::int64_t at, int code, bool asked = false) {
  Ending ending;
  ending.index = index;
  ending.at = at;
  ending.asked = asked;
  ending.how = ExitReason{ExitReason::Kind::exited, code, false};
  return ending;
}

Ending killed(std::size_t index, std::int64_t at, int signal, bool asked = false) {
  Ending ending = exited(index, at, 0, asked);
  ending.how = ExitReason{ExitReason::Kind::signaled, signal, false};
  if (asked) ending.sent = std::uint64_t{1} << SIGTERM;
  return ending;
}

FailureText says(const char* summary, bool consequence) {
  FailureText text;
  text.family = FailureFamily::python;
  text.summary = summary;
  text.consequence = consequence;
  text.at_end = true;
  return text;
}

const FailureText kRaised = says("ValueError: x", false);
const FailureText kReset = says("ConnectionResetError", true);

using Texts = std::map<std::size_t, FailureText>;

std::optional<std::size_t> root_of(std::vector<Ending> endings, const Texts& texts) {
  return root_cause(endings, [&](std::size_t index) {
    const auto found = texts.find(index);
    return found == texts.end() ? std::nullopt : std::optional<FailureText>(found->second);
  });
}

}  // namespace

TEST_CASE("the first by time of death is the root, whatever its rank and the order of the list") {
  CHECK(root_of({exited(0, 9, 1), exited(3, 5, 2), exited(1, 7, 3)}, {}) == 3);
  CHECK(root_of({exited(0, 1, 0), exited(1, 7, 3)}, {}) == 1);
  CHECK_FALSE(root_of({exited(0, 1, 0)}, {}).has_value());
  CHECK_FALSE(root_of({}, {}).has_value());
}

TEST_CASE("processes that ended as they were told are no failures") {
  CHECK_FALSE(root_of({killed(0, 1, SIGTERM, true), exited(1, 2, 143, true)}, {}).has_value());
  CHECK(root_of({killed(0, 1, SIGTERM, true), exited(1, 2, 4)}, {}) == 1);
}

TEST_CASE("who only lost a peer gives way to who has a reason of its own") {
  const std::vector<Ending> endings = {exited(0, 5 * kMs, 1), exited(5, 300 * kMs, 1)};
  CHECK(root_of(endings, {{0, kReset}, {5, kRaised}}) == 5);
  CHECK(root_of(endings, {{0, kRaised}, {5, kRaised}}) == 0);
  CHECK(root_of(endings, {{0, kReset}, {5, kReset}}) == 0);
  CHECK(root_of(endings, {{0, kReset}}) == 5);  // who says nothing did not lose anybody
  CHECK(root_of(endings, {{5, kRaised}}) == 0);
}

TEST_CASE("beyond the window it is another failure") {
  const std::vector<Ending> endings = {exited(0, 0, 1), exited(5, kCascadeWindow + 1, 1)};
  CHECK(root_of(endings, {{0, kReset}, {5, kRaised}}) == 0);
}

TEST_CASE("one that was stopped while it was dying is the root when its log ends with its own failure") {
  const std::vector<Ending> endings = {exited(0, 5 * kMs, 1), killed(5, 9 * kMs, SIGTERM, true),
                                       killed(6, 8 * kMs, SIGTERM, true)};
  CHECK(root_of(endings, {{0, kReset}, {5, kRaised}}) == 5);
  FailureText old = kRaised;
  old.at_end = false;
  CHECK(root_of(endings, {{0, kReset}, {5, old}}) == 0);
  CHECK(root_of(endings, {{0, kReset}, {5, says("KeyboardInterrupt", true)}}) == 0);
  FailureText line = kRaised;
  line.family = FailureFamily::message;
  CHECK(root_of(endings, {{0, kReset}, {5, line}}) == 0);
  CHECK(root_of(endings, {{5, kRaised}}) == 0);  // 0 did not say that it lost a peer
}

TEST_CASE("a signal from elsewhere needs no words, and a closed pipe is a consequence") {
  CHECK(root_of({killed(0, 1, SIGPIPE), killed(1, 5 * kMs, SIGSEGV)}, {}) == 1);
  CHECK(root_of({exited(0, 1, 1), killed(1, 5 * kMs, SIGKILL, true)}, {{0, kReset}}) == 1);
  Ending ours = killed(1, 5 * kMs, SIGKILL, true);
  ours.sent |= std::uint64_t{1} << SIGKILL;
  CHECK(root_of({exited(0, 1, 1), ours}, {{0, kReset}}) == 0);
  CHECK(root_of({killed(0, 1, SIGPIPE), killed(1, 5 * kMs, SIGPIPE)}, {}) == 0);
}

TEST_CASE("a process that hung, or was never started, is a root") {
  Ending hung = killed(2, 50 * kMs, SIGKILL, true);
  hung.hung = true;
  hung.sent = std::uint64_t{1} << SIGKILL;
  CHECK(root_of({hung}, {}) == 2);
  Ending absent = exited(1, 5 * kMs, 0);
  absent.how = StartFailure{"exec", 2};
  CHECK(root_of({exited(0, 1, 1), absent}, {{0, kReset}}) == 1);
}

TEST_CASE("texts are read only where the order of death is in doubt") {
  int read = 0;
  const std::vector<Ending> endings = {exited(0, 1, 1), exited(1, 2, 1), exited(2, 3, 1)};
  root_cause(endings, [&](std::size_t) {
    ++read;
    return std::optional<FailureText>(kRaised);
  });
  CHECK(read == 1);
}

TEST_CASE("in ten thousand shuffled cascades the one that raised is named") {
  std::mt19937 random(20240601);
  const auto draw = [&](int max) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(max)); };
  for (int round = 0; round < 10000; ++round) {
    const std::size_t culprit = random() % 8;
    const std::int64_t raised = 1000 * kMs;
    Texts texts;
    std::vector<Ending> endings;
    std::int64_t first = raised + draw(500) * kMs;  // the culprit may be slow to die
    endings.push_back(exited(culprit, first, 1));
    texts[culprit] = kRaised;
    for (std::size_t i = 0; i < 8; ++i) {
      if (i == culprit) continue;
      const std::int64_t at = raised + (5 + draw(496)) * kMs;
      const bool by_signal = draw(4) == 0;
      endings.push_back(by_signal ? killed(i, at, SIGPIPE) : exited(i, at, 1));
      if (!by_signal) texts[i] = kReset;
      first = std::min(first, at);
    }
    for (Ending& ending : endings) {  // fleetrun stops the others at the first death, and some heed it
      ending.asked = ending.at > first;
      if (ending.asked) ending.sent = std::uint64_t{1} << SIGTERM;
      if (ending.asked && draw(2) == 0) ending.how = ExitReason{ExitReason::Kind::signaled, SIGTERM, false};
    }
    std::shuffle(endings.begin(), endings.end(), random);
    REQUIRE(root_of(endings, texts) == culprit);
  }
}
