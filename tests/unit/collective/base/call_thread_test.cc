#include "collective/base/call_thread.h"

#include <doctest/doctest.h>

#include <future>
#include <thread>
#include <vector>

namespace fleetrun::collective {
namespace {

TEST_CASE("calls run in the order in which they were started, on a thread beside the caller") {
  std::vector<std::size_t> counts;
  std::thread::id thread;
  CallThread calls([&](const Call& call) {
    counts.push_back(call.count);
    thread = std::this_thread::get_id();
  });
  std::vector<std::unique_ptr<Work>> works;
  for (std::size_t i = 0; i < 20; ++i) works.push_back(calls.start({.count = i}));
  for (auto& work : works) work->wait();
  REQUIRE(counts.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK(counts[i] == i);
  CHECK(thread != std::this_thread::get_id());
}

TEST_CASE("a work has not ended before its call has, and wait() waits for that") {
  std::promise<void> go;
  CallThread calls([&](const Call&) { go.get_future().wait(); });
  const auto work = calls.start({});
  CHECK_FALSE(work->has_ended());
  go.set_value();
  work->wait();
  CHECK(work->has_ended());
}

TEST_CASE("what a call throws, wait() throws, as often as it is asked; later calls run") {
  CallThread calls([](const Call& call) {
    if (call.count == 1) throw Error(ErrorKind::network, "rank 1 is gone", "look at it").while_doing("x");
  });
  const auto bad = calls.start({.count = 1});
  const auto good = calls.start({.count = 2});
  for (int i = 0; i < 2; ++i) {
    try {
      bad->wait();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::network);
      CHECK(std::string(error.what()) == "rank 1 is gone");
      CHECK(error.hint() == "look at it");
      CHECK(error.context() == std::vector<std::string>{"x"});
    }
  }
  good->wait();
}

TEST_CASE("what is no Error becomes one") {
  CallThread calls([](const Call&) { throw std::bad_alloc(); });
  const auto work = calls.start({});
  CHECK_THROWS_WITH_AS(work->wait(), "std::bad_alloc", Error);
}

TEST_CASE("finish() and the destructor wait for all that was started; a work may outlive both") {
  int calls_made = 0;
  std::unique_ptr<Work> work;
  {
    CallThread calls([&](const Call&) { ++calls_made; });
    calls.finish();
    for (int i = 0; i < 5; ++i) work = calls.start({});
    calls.finish();
    CHECK(calls_made == 5);
    work = calls.start({});
  }
  CHECK(calls_made == 6);
  CHECK(work->has_ended());
  work->wait();
}

TEST_CASE("destroying a work waits for its call and drops its error") {
  std::promise<void> go;
  int calls_made = 0;
  CallThread calls([&](const Call&) {
    go.get_future().wait();
    ++calls_made;
    throw Error(ErrorKind::network, "gone");
  });
  std::thread later([&] { go.set_value(); });
  calls.start({}).reset();
  CHECK(calls_made == 1);
  later.join();
}

}  // namespace
}  // namespace fleetrun::collective
