#include "launcher/model/hang_rules.h"

#include <doctest/doctest.h>

using namespace fleetrun::launcher;
using namespace std::chrono_literals;

namespace {

/// Shows a judge some processes once per period, as the watch does.
struct Court {
  explicit Court(std::size_t processes, HangSigns by = {}, std::vector<bool> serves = {})
      : rules{10s, by},
        judge(rules, serves.empty() ? std::vector<bool>(processes) : std::move(serves)),
        vitals(processes) {
    for (Vitals& process : vitals) process.running = true;
  }

  HangFindings look() { return judge.look(now, vitals); }

  /// Until somebody hangs or `time` is over; `work` happens before each look.
  template <class Work>
  HangFindings pass(std::chrono::nanoseconds time, Work&& work) {
    for (const auto end = now + time; now < end;) {
      now += look_period(rules);
      work();
      HangFindings findings = look();
      if (!findings.silent.empty()) return findings;
    }
    return {};
  }
  HangFindings pass(std::chrono::nanoseconds time) {
    return pass(time, [] {});
  }

  HangRules rules;
  HangJudge judge;
  std::vector<Vitals> vitals;
  std::chrono::nanoseconds now = 0s;
};

}  // namespace

TEST_CASE("the signs of life are words") {
  CHECK(parse_hang_signs("heartbeat") == HangSigns{true, false, false});
  CHECK(parse_hang_signs("cpu,log") == HangSigns{false, true, true});
  CHECK(parse_hang_signs("heartbeat,log,cpu") == HangSigns{true, true, true});
  for (const char* text : {"", "logs", "log,log", "log,", ",", "Heartbeat"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_hang_signs(text).has_value());
  }
}

TEST_CASE("looks are a tenth of the timeout apart, within limits") {
  CHECK(look_period({10s, {}}) == 1s);
  CHECK(look_period({300ms, {}}) == 30ms);
  CHECK(look_period({1ms, {}}) == 20ms);
  CHECK(look_period({1h, {}}) == 5s);
}

TEST_CASE("a process that stops beating hangs, whatever its log and its processor do") {
  Court court(2);
  CHECK(court
            .pass(60s,
                  [&] {
                    for (Vitals& process : court.vitals) ++process.beats;
                    court.vitals[1].step = 120;
                  })
            .silent.empty());
  const HangFindings findings = court.pass(60s, [&] {
    ++court.vitals[0].beats;
    court.vitals[1].log_bytes += 100;
    court.vitals[1].cpu_seconds += 1;
  });
  REQUIRE(findings.silent.size() == 1);
  CHECK(findings.silent[0] == Silence{.index = 1,
                                      .lasted = 10s,
                                      .why = "sent no heartbeat for 10 s (step 120 was its last)",
                                      .step = 120,
                                      .stopped = false});
  CHECK(court.now == 70s);
}

TEST_CASE("a process that never beat is judged by its log and its processor time together") {
  Court court(1);
  CHECK(court.pass(60s, [&] { court.vitals[0].log_bytes += 1; }).silent.empty());
  CHECK(court.pass(60s, [&] { court.vitals[0].cpu_seconds += 0.5; }).silent.empty());
  const HangFindings findings = court.pass(60s);
  REQUIRE(findings.silent.size() == 1);
  CHECK(findings.silent[0].why == "wrote nothing to its log and used no processor time for 10 s");
  CHECK(court.now == 130s);
}

TEST_CASE("the little processor time of a waiting process is no life, and slow work is") {
  Court waiting(1);
  CHECK_FALSE(waiting.pass(60s, [&] { waiting.vitals[0].cpu_seconds += 0.001; }).silent.empty());
  Court working(1);
  CHECK(working.pass(60s, [&] { working.vitals[0].cpu_seconds += 0.05; }).silent.empty());
}

TEST_CASE("--hang_by says which signs count") {
  SUBCASE("log alone: a process that spins in a busy wait hangs") {
    Court court(1, {.heartbeat = false, .log = true, .cpu = false});
    const HangFindings findings = court.pass(60s, [&] { court.vitals[0].cpu_seconds += 1; });
    REQUIRE(findings.silent.size() == 1);
    CHECK(findings.silent[0].why == "wrote nothing to its log for 10 s");
  }
  SUBCASE("all: one of them is enough to live") {
    Court court(1, {.heartbeat = true, .log = true, .cpu = true});
    court.vitals[0].beats = 1;
    CHECK(court.pass(60s, [&] { court.vitals[0].log_bytes += 1; }).silent.empty());
    const HangFindings findings = court.pass(60s);
    REQUIRE(findings.silent.size() == 1);
    CHECK(findings.silent[0].why ==
          "sent no heartbeat, wrote nothing to its log and used no processor time for 10 s");
  }
  SUBCASE("heartbeat: before its first one a process is judged by the others") {
    Court court(1, {.heartbeat = true, .log = false, .cpu = false});
    CHECK(court.pass(60s, [&] { court.vitals[0].cpu_seconds += 1; }).silent.empty());
    court.vitals[0].beats = 1;
    CHECK_FALSE(court.pass(60s, [&] { court.vitals[0].cpu_seconds += 1; }).silent.empty());
  }
}

TEST_CASE("a stopped process hangs and is said to be stopped, servers too") {
  Court court(2, {}, {true, false});
  court.vitals[1].beats = 1;
  for (Vitals& process : court.vitals) process.stopped = true;
  const HangFindings findings = court.pass(60s);
  REQUIRE(findings.silent.size() == 2);
  for (const Silence& silence : findings.silent) {
    CHECK(silence.stopped);
    CHECK(silence.why == "has been stopped by a signal for 10 s");
  }
}

TEST_CASE("a process that was stopped for a moment starts its time anew") {
  Court court(1, {}, {true});
  court.vitals[0].stopped = true;
  CHECK(court.pass(8s).silent.empty());
  court.vitals[0].stopped = false;
  CHECK(court.pass(60s).silent.empty());
  court.vitals[0].stopped = true;
  CHECK(court.pass(8s).silent.empty());
}

TEST_CASE("a server that waits does not hang") {
  Court court(2, {}, {true, false});
  CHECK(court.pass(600s, [&] { ++court.vitals[1].beats; }).silent.empty());
}

TEST_CASE("a pause of fleetrun itself is nobody's silence") {
  Court court(1);
  court.vitals[0].beats = 1;
  CHECK(court.pass(5s).silent.empty());
  for (int stop = 0; stop < 2; ++stop) {
    court.now += 1h;  // stopped and continued: each pause counts as two looks
    CHECK(court.look().silent.empty());
  }
  court.now += 1h;
  ++court.vitals[0].beats;
  CHECK(court.look().silent.empty());
  CHECK(court.pass(9s).silent.empty());
  CHECK_FALSE(court.pass(2s).silent.empty());
}

TEST_CASE("a process under a debugger is not judged, which is said once") {
  Court court(1);
  court.vitals[0].beats = 1;
  CHECK(court.pass(5s).silent.empty());
  court.vitals[0].debugged = court.vitals[0].stopped = true;
  court.now += 1s;
  CHECK(court.look().debugged == std::vector<std::size_t>{0});
  court.now += 1s;
  CHECK(court.look().debugged.empty());
  CHECK(court.pass(600s).silent.empty());
  court.vitals[0].debugged = court.vitals[0].stopped = false;
  CHECK(court.pass(9s).silent.empty());  // its time starts when the debugger has left
  CHECK_FALSE(court.pass(2s).silent.empty());
}

TEST_CASE("a process that is started anew has all its time") {
  Court court(1);
  court.vitals[0].beats = 5;
  CHECK(court.pass(9s).silent.empty());
  SUBCASE("seen to be away between two looks") {
    court.vitals[0] = {};
    court.now += 1s;
    CHECK(court.look().silent.empty());
  }
  SUBCASE("started anew between two looks") {
    court.judge.forget(0);
  }
  court.vitals[0] = {};
  court.vitals[0].running = true;
  CHECK(court.pass(9s).silent.empty());
  CHECK_FALSE(court.pass(2s).silent.empty());
}

TEST_CASE("the longest silence comes first") {
  Court court(3);
  for (Vitals& process : court.vitals) process.beats = 1;
  court.look();
  court.now += 1s;
  ++court.vitals[0].beats;
  court.look();
  court.now += 1s;
  ++court.vitals[2].beats;
  court.look();
  for (int i = 0; i < 12; ++i) {
    court.now += 1s;
    court.look();
  }
  const HangFindings findings = court.look();
  REQUIRE(findings.silent.size() == 3);
  CHECK(findings.silent[0].index == 1);
  CHECK(findings.silent[1].index == 0);
  CHECK(findings.silent[2].index == 2);
}

TEST_CASE("who was silent two looks after the first hangs with it, who was later does not") {
  Court court(3);
  const int last_beats[] = {5, 7, 8};
  int looks = 0;
  const HangFindings findings = court.pass(60s, [&] {
    for (std::size_t i = 0; i < 3; ++i)
      if (looks < last_beats[i]) ++court.vitals[i].beats;
    ++looks;
  });
  REQUIRE(findings.silent.size() == 2);
  CHECK(findings.silent[0].index == 0);
  CHECK(findings.silent[0].lasted == 10s);
  CHECK(findings.silent[1].index == 1);
  CHECK(findings.silent[1].lasted == 8s);
}
