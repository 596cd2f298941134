#include "collective/groups/watched_communicator.h"

#include <doctest/doctest.h>

#include <optional>
#include <vector>

using namespace fleetrun;
using namespace fleetrun::collective;

namespace {

/// Of rank 1 of 2: throws what it is given, and remembers what it was aborted with.
struct Scripted : Communicator {
  explicit Scripted(std::vector<std::string>& log) : log_(log) {}

  const Place& place() const noexcept override { return place_; }
  void run(const Call& call) override {
    if (failure) throw Error(*failure);
    log_.push_back(to_string(call));
  }
  std::unique_ptr<Work> start(const Call&) override { return nullptr; }
  void abort(const Error& why) noexcept override { log_.push_back(std::string("aborted: ") + why.what()); }

  Place place_{"g", 1, 2};
  std::optional<Error> failure;
  std::vector<std::string>& log_;
};

struct Watched {
  std::vector<std::string> log;
  Scripted* inner = nullptr;
  std::unique_ptr<WatchedCommunicator> communicator;

  Watched() {
    auto scripted = std::make_unique<Scripted>(log);
    inner = scripted.get();
    communicator = std::make_unique<WatchedCommunicator>(
        std::move(scripted),
        [this](const Error& why) { log.push_back(std::string("announced: ") + why.what()); },
        [this] { log.push_back("forgotten"); });
  }
};

const Call kBarrier{};

}  // namespace

TEST_CASE("calls are handed on, also those that are started, and the place is the inner one's") {
  Watched watched;
  CHECK(watched.communicator->place().group == "g");
  CHECK(watched.communicator->place().rank == 1);
  watched.communicator->start(kBarrier)->wait();
  watched.communicator->run(kBarrier);
  watched.communicator.reset();
  CHECK(watched.log == std::vector<std::string>{to_string(kBarrier), to_string(kBarrier), "forgotten"});
}

TEST_CASE("the first failure of a call is announced, and thrown") {
  Watched watched;
  watched.inner->failure = Error(ErrorKind::network, "rank 0 died");
  CHECK_THROWS_WITH_AS(watched.communicator->run(kBarrier), "rank 0 died", Error);
  CHECK_THROWS_WITH_AS(watched.communicator->start(kBarrier)->wait(), "rank 0 died", Error);
  CHECK(watched.log == std::vector<std::string>{"announced: rank 0 died"});
}

TEST_CASE("what another rank has announced is handed in and not announced again") {
  Watched watched;
  watched.communicator->told(Error(ErrorKind::network, "rank 0 died"));
  watched.inner->failure = Error(ErrorKind::network, "rank 0 died");
  CHECK_THROWS_AS(watched.communicator->run(kBarrier), Error);
  CHECK(watched.log == std::vector<std::string>{"aborted: rank 0 died"});
}

TEST_CASE("an abort is announced once and reaches the inner communicator") {
  Watched watched;
  watched.communicator->abort(Error(ErrorKind::usage, "enough"));
  watched.communicator->abort(Error(ErrorKind::usage, "again"));
  CHECK(watched.log == std::vector<std::string>{"announced: enough", "aborted: enough", "aborted: again"});
}

TEST_CASE("arguments that cannot be fail the call alone") {
  Watched watched;
  const Call bad{.kind = CallKind::broadcast, .root = 7};
  CHECK_THROWS_AS(watched.communicator->run(bad), Error);
  CHECK_THROWS_AS(watched.communicator->start(bad), Error);
  watched.communicator->run(kBarrier);
  CHECK(watched.log == std::vector<std::string>{to_string(kBarrier)});
}
