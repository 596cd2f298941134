// What goes wrong in a group over shared memory: every rank that is left gets one error that says what.
#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "collective/cpu/shared_communicator.h"
#include "collective/store/memory_store.h"
#include "tests/support/child_process.h"
#include "tests/support/forked_store.h"

namespace {

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

using Ranks = std::vector<std::unique_ptr<Communicator>>;

Ranks meet(int size, const SharedOptions& options = {}) {
  MemoryStore store;
  Ranks ranks(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ranks[static_cast<std::size_t>(rank)] = make_shared_communicator({"test", rank, size}, store, options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(to_string(error.kind())) + ": " + error.what();
  }
  return "no error";
}

/// What each rank's action ends with; all run at the same time.
std::vector<std::string> outcomes(const std::vector<std::function<void()>>& actions) {
  std::vector<std::string> texts(actions.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < actions.size(); ++r)
    threads.emplace_back([&, r] { texts[r] = error_of(actions[r]); });
  for (std::thread& thread : threads) thread.join();
  return texts;
}

void check_all(const std::vector<std::string>& texts, const std::string& wanted) {
  for (const std::string& text : texts) CHECK(text == wanted);
}

TEST_CASE("ranks that call different things all learn which rank differs and what it and the others call") {
  float values[8] = {};
  const auto reduces = [&](Communicator& rank, std::size_t count, Operation operation) {
    all_reduce(rank, {values, count, DataType::float32}, {values, count, DataType::float32}, operation);
  };
  struct Case {
    std::function<void(Communicator&)> other;
    std::string text;
  };
  const std::string rest = "; rank 0 calls all_reduce of 4 float32 (sum), its call 1";
  const Case cases[] = {
      {[&](Communicator& rank) { reduces(rank, 5, Operation::sum); },
       "all_reduce of 5 float32 (sum), its call 1"},
      {[&](Communicator& rank) { reduces(rank, 4, Operation::max); },
       "all_reduce of 4 float32 (max), its call 1"},
      {[&](Communicator& rank) {
         all_reduce(rank, {values, 4, DataType::int32}, Operation::sum);
       },
       "all_reduce of 4 int32 (sum), its call 1"},
      {[&](Communicator& rank) {
         broadcast(rank, {values, 4, DataType::float32}, 1);
       },
       "broadcast of 4 float32, root 1, its call 1"},
      {[&](Communicator& rank) { barrier(rank); }, "barrier, its call 1"},
  };
  for (const Case& one : cases) {
    const Ranks ranks = meet(3);
    std::vector<std::function<void()>> actions;
    for (std::size_t r = 0; r < 3; ++r) {
      actions.push_back([&, r] {
        float own[8] = {};
        barrier(*ranks[r]);
        if (r == 2)
          one.other(*ranks[r]);
        else
          all_reduce(*ranks[r], {own, 4, DataType::float32}, Operation::sum);
      });
    }
    check_all(outcomes(actions), "config: group test: rank 2 calls " + one.text + rest);
    // And for ever.
    CHECK(error_of([&] { barrier(*ranks[0]); }) == "config: group test: rank 2 calls " + one.text + rest);
  }
}

TEST_CASE("the two ends of a message that differ both learn it") {
  const Ranks ranks = meet(2);
  const std::string wanted =
      "config: group test: rank 0 sends rank 1: send of 3 int8, its call 0; rank 1 expects: send of 4 int8, "
      "its call 0";
  check_all(outcomes({[&] {
                        char values[3] = {};
                        send(*ranks[0], {values, 3, DataType::int8}, 1);
                        barrier(*ranks[0]);
                      },
                      [&] {
                        char values[4] = {};
                        receive(*ranks[1], {values, 4, DataType::int8}, 0);
                      }}),
            wanted);
}

TEST_CASE("counts of all_to_all that two ranks see differently") {
  const Ranks ranks = meet(2);
  const std::vector<std::size_t> sends = {1, 2}, gets = {1, 1}, other = {1, 1};
  check_all(
      outcomes({[&] {
                  int from[3] = {}, to[2] = {};
                  all_to_all(*ranks[0], {from, 3, DataType::int32}, sends, {to, 2, DataType::int32}, gets);
                  barrier(*ranks[0]);
                },
                [&] {
                  int from[2] = {}, to[2] = {};
                  all_to_all(*ranks[1], {from, 2, DataType::int32}, other, {to, 2, DataType::int32}, other);
                }}),
      "config: group test: all_to_all: rank 0 sends 2 elements to rank 1, which expects 1");
}

TEST_CASE("ranks that do not come are named at the deadline, to all, also when they come at last") {
  const Ranks ranks = meet(4, {.call_within = 50ms});
  const std::string wanted =
      "timeout: group test: ranks 1, 3 did not come to barrier, its call 0, within 50 ms";
  check_all(outcomes({[&] { barrier(*ranks[0]); }, [&] { barrier(*ranks[2]); }}), wanted);
  check_all(outcomes({[&] { barrier(*ranks[1]); }, [&] { barrier(*ranks[3]); }}), wanted);
  const TimeLimit limit = 10min;
  const Ranks pair = meet(2, {.call_within = limit});
  limit.set(50ms);
  char value = 0;
  CHECK(error_of([&] {
          receive(*pair[0], {&value, 1, DataType::int8}, 1);
        }) == "timeout: group test: rank 1 did not come within 50 ms; rank 0 calls receive of 1 int8");
}

TEST_CASE("ranks that never meet are named to those that did, at the deadline") {
  MemoryStore store;
  const SharedOptions options{.meet_within = 50ms};
  check_all(outcomes({[&] {
                        // Long enough for rank 2 to come, on a machine that does other things beside.
                        make_shared_communicator({"test", 0, 4}, store, {.meet_within = 2s});
                      },
                      [&] {
                        make_shared_communicator({"test", 2, 4}, store, {.meet_within = 1min});
                      }}),
            "timeout: group test: ranks 1, 3 did not come in time");
  CHECK(error_of([&] {
          make_shared_communicator({"test", 1, 4}, store, options);
        }) == "network: group test: rank 0 died before all ranks had joined");
  MemoryStore empty;
  CHECK(error_of([&] {
          make_shared_communicator({"test", 1, 4}, empty, options);
        }) == "timeout: group test: rank 0 did not come in time");
}

TEST_CASE("ranks that disagree on their number, or are the same, do not meet") {
  MemoryStore store;
  check_all(outcomes({[&] {
                        make_shared_communicator({"test", 0, 2}, store);
                      },
                      [&] {
                        make_shared_communicator({"test", 1, 3}, store);
                      }}),
            "config: group test: rank 1 says that there are 3 ranks, rank 0 that there are 2");
  MemoryStore again;
  std::vector<std::string> texts = outcomes({[&] {
                                               make_shared_communicator({"test", 0, 3}, again);
                                             },
                                             [&] {
                                               make_shared_communicator({"test", 1, 3}, again);
                                             },
                                             [&] {
                                               make_shared_communicator({"test", 1, 3}, again);
                                             }});
  check_all(texts, "config: group test: rank 1 came twice");
}

/// Connects to where rank 0 listens and says something that is not a rank's; how the connection ends.
std::string say_as_stranger(Store& store, const std::string& words) {
  const std::string value = store.wait("shared/memory", Store::Clock::now() + 20s);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = value.substr(3, value.find(' ', 3) - 3);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (::connect(socket.value(), reinterpret_cast<sockaddr*>(&address),
                static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) != 0)
    return "refused";
  static_cast<void>(!::write(socket.value(), words.data(), words.size()));
  char answer = 0;
  return ::read(socket.value(), &answer, 1) == 0 ? "closed" : "answered";
}

TEST_CASE("a stranger without the token is not heard and does not keep the ranks from meeting") {
  MemoryStore store;
  std::string ends[2];
  check_all(outcomes({[&] {
                        make_shared_communicator({"test", 0, 2}, store);
                      },
                      [&] {
                        ends[0] = say_as_stranger(store, "hello");
                        // As long as a rank's first words, with its number: only the token is wrong.
                        std::string words(8 + 4 + 4 + 32 + sizeof(cpu_set_t), '\0');
                        words.replace(0, 8, "COLLMET1");
                        words[8] = 1;
                        words[12] = 2;
                        ends[1] = say_as_stranger(store, words);
                        make_shared_communicator({"test", 1, 2}, store);
                      }}),
            "no error");
  CHECK(ends[0] == "closed");
  CHECK(ends[1] == "closed");
}

TEST_CASE("abort() ends waiting calls and later ones on all ranks with what it was given") {
  const Ranks ranks = meet(3);
  check_all(outcomes({[&] { barrier(*ranks[0]); }, [&] { barrier(*ranks[1]); },
                      [&] {
                        ranks[2]->abort(Error(ErrorKind::host, "no more"));
                        barrier(*ranks[2]);
                      }}),
            "host: no more");
}

TEST_CASE("a rank that leaves between calls is no death; whoever calls it later learns that it has left") {
  Ranks ranks = meet(3);
  std::vector<std::function<void()>> actions;
  for (std::size_t r = 0; r < 3; ++r)
    actions.push_back([&, r] {
      barrier(*ranks[r]);
      if (r == 0) ranks[r].reset();
      if (r != 0) barrier(*ranks[r]);
    });
  const std::vector<std::string> texts = outcomes(actions);
  CHECK(texts[0] == "no error");
  for (const std::size_t r : {1u, 2u}) {
    CHECK(texts[r].starts_with("network: group test: rank 0 has left; rank "));
    CHECK(texts[r].ends_with(" calls barrier, its call 1"));
  }
}

TEST_CASE("a group is left cleanly while the others finish the last call") {
  for (int round = 0; round < 50; ++round) {
    Ranks ranks = meet(3);
    std::vector<std::function<void()>> actions;
    for (std::size_t r = 0; r < 3; ++r)
      actions.push_back([&, r] {
        std::vector<float> values(100'000, 1.0f);
        all_reduce(*ranks[r], {values.data(), values.size(), DataType::float32}, Operation::sum);
        ranks[r].reset();
        if (values.front() != 3.0f || values.back() != 3.0f) throw Error(ErrorKind::data, "wrong");
      });
    check_all(outcomes(actions), "no error");
  }
}

TEST_CASE("started calls run in order and beside the caller, also when run() follows") {
  const Ranks ranks = meet(2);
  std::vector<std::function<void()>> actions;
  for (std::size_t r = 0; r < 2; ++r)
    actions.push_back([&, r] {
      std::vector<std::vector<std::int32_t>> values(20,
                                                    std::vector<std::int32_t>(1000, static_cast<int>(r) + 1));
      std::vector<std::unique_ptr<Work>> works;
      for (auto& one : values)
        works.push_back(ranks[r]->start({.kind = CallKind::all_reduce,
                                         .type = DataType::int32,
                                         .input = one.data(),
                                         .output = one.data(),
                                         .count = one.size()}));
      std::int32_t last = 1;
      all_reduce(*ranks[r], {&last, 1, DataType::int32}, Operation::sum);
      for (auto& work : works) work->wait();
      for (auto& one : values)
        for (const std::int32_t value : one)
          if (value != 3) throw Error(ErrorKind::data, "wrong");
      if (last != 2) throw Error(ErrorKind::data, "wrong");
    });
  check_all(outcomes(actions), "no error");
}

/// A rank in a process of its own that says "error TEXT" or "done" at the end, and when it is ready.
std::unique_ptr<ChildProcess> child_rank(Store& store, int rank, int size,
                                         const std::function<void(Communicator&)>& action) {
  return std::make_unique<ChildProcess>([&, rank, size](int output) {
    const auto say = [&](const std::string& text) {
      static_cast<void>(!::write(output, (text + "\n").data(), text.size() + 1));
    };
    const std::string end = error_of([&] {
      const auto communicator = make_shared_communicator({"test", rank, size}, store);
      say("ready");
      action(*communicator);
    });
    say(end);
  });
}

void reduce_for_ever(Communicator& rank) {
  std::vector<float> values(50'000);
  for (;;) all_reduce(rank, {values.data(), values.size(), DataType::float32}, Operation::max);
}

TEST_CASE("a rank that is killed inside a call is named by all others, in less than a second") {
  for (const std::size_t victim : {0u, 2u, 3u}) {
    ForkedStore store;
    std::vector<std::unique_ptr<ChildProcess>> ranks;
    for (int r = 0; r < 4; ++r) ranks.push_back(child_rank(store, r, 4, reduce_for_ever));
    for (const auto& rank : ranks) REQUIRE(rank->line(20s) == "ready");
    ranks[victim]->signal(SIGKILL);
    for (std::size_t r = 0; r < 4; ++r) {
      if (r == victim) continue;
      const std::string text = ranks[r]->line(10s).value_or("nothing");
      CHECK(text.starts_with("network: group test: rank " + std::to_string(victim) + " (process "));
      CHECK(text.ends_with(") has died"));
    }
  }
}

TEST_CASE("a rank that is killed is found though a child that it has forked lives on") {
  ForkedStore store;
  const auto other = child_rank(store, 0, 2, [](Communicator& rank) { barrier(rank); });
  const auto forking = child_rank(store, 1, 2, [](Communicator&) {
    if (::fork() == 0) {
      ::alarm(20);
      ::pause();
    }
    ::kill(::getpid(), SIGKILL);
  });
  REQUIRE(other->line(20s) == "ready");
  const std::string text = other->line(10s).value_or("nothing");
  CHECK(text.starts_with("network: group test: rank 1 (process "));
}

TEST_CASE("a forked process has no part in the group, and its end is not the rank's") {
  ForkedStore store;
  const auto other = child_rank(store, 0, 2, [](Communicator& rank) { barrier(rank); });
  const auto forking = child_rank(store, 1, 2, [](Communicator& rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string text = error_of([&] { barrier(rank); });
      rank.abort(Error(ErrorKind::host, "of a fork"));
      rank.~Communicator();
      ::_exit(text.starts_with("config: group test: a communicator cannot be used in a fork") ? 0 : 1);
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0)
      throw Error(ErrorKind::data, "the fork took part");
    barrier(rank);
  });
  CHECK(other->line(20s) == "ready");
  CHECK(other->line(20s) == "no error");
  CHECK(forking->line(20s) == "ready");
  CHECK(forking->line(20s) == "no error");
}

TEST_CASE("without enough memory there is an error on all ranks and no group") {
  ForkedStore store;
  const auto limited = std::make_unique<ChildProcess>([&](int output) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit max{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &max);
    const std::string text = error_of([&] { make_shared_communicator({"test", 0, 2}, store); }) + "\n";
    static_cast<void>(!::write(output, text.data(), text.size()));
  });
  const std::string text = limited->line(20s).value_or("nothing");
  CHECK(text.starts_with("host: "));
  CHECK(text.ends_with(" bytes of shared memory cannot be had: File too large"));
  const std::string other = error_of([&] { make_shared_communicator({"test", 1, 2}, store); });
  CHECK(other == "host: group test: rank 0: " + text.substr(6));
}

}  // namespace
