// Trainers on the loopback interface, a thread each, hand examples to each other.
#include "runtime/trainer/global_shuffle.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "tests/support/meddler.h"

namespace fleetrun::runtime {
namespace {

using Parcel = dataset::TrainerExchange::Parcel;

const Secret& secret() {
  static const Secret one = Secret::from_bytes("0123456789abcdef0123456789ABCDEF");
  return one;
}

struct Trainer {
  std::unique_ptr<GlobalShuffle> exchange;
  std::vector<std::string> got;  // by sender
  std::optional<Error> error;
};

std::vector<Trainer> trainers_of(std::uint32_t count,
                                 std::chrono::milliseconds patience = std::chrono::seconds(30)) {
  std::vector<Trainer> trainers(count);
  std::vector<std::string> endpoints;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    trainers[rank].exchange = std::make_unique<GlobalShuffle>(
        GlobalShuffleOptions{"127.0.0.1", rank, count, {secret(), "a test"}, patience});
    trainers[rank].got.resize(count);
    endpoints.push_back("127.0.0.1:" + std::to_string(trainers[rank].exchange->port()));
  }
  for (Trainer& trainer : trainers) trainer.exchange->set_endpoints(endpoints);
  return trainers;
}

using Next = std::function<std::vector<Parcel>(std::uint32_t rank)>;

/// All of them at once; who fails lets its connections go, as a process does that ends.
void run(std::vector<Trainer>& trainers, const Next& next) {
  std::vector<std::jthread> threads;
  for (std::uint32_t rank = 0; rank < trainers.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Trainer& trainer = trainers[rank];
      if (!trainer.exchange) return;
      try {
        trainer.exchange->exchange(
            [&] { return next(rank); },
            [&](std::uint32_t from, std::string_view bytes) { trainer.got[from] += bytes; });
      } catch (const Error& error) {
        trainer.error = error;
        trainer.exchange = nullptr;
      }
    });
  }
}

TEST_CASE("every trainer gets what every other one sends, in order") {
  constexpr std::uint32_t kTrainers = 4;
  constexpr int kRounds = 40;
  std::vector<Trainer> trainers = trainers_of(kTrainers);
  std::vector<int> rounds(kTrainers);
  const auto text = [](std::uint32_t from, std::uint32_t to, int round) {
    return std::to_string(from) + ">" + std::to_string(to) + ":" +
           std::string(static_cast<std::size_t>(round) * 5000, 'x');
  };
  run(trainers, [&](std::uint32_t rank) {
    std::vector<Parcel> parcels;
    if (rounds[rank] < kRounds)
      for (std::uint32_t to = 0; to < kTrainers; ++to)
        if (to != rank) parcels.push_back({to, text(rank, to, rounds[rank])});
    ++rounds[rank];
    return parcels;
  });
  for (std::uint32_t to = 0; to < kTrainers; ++to) {
    REQUIRE_FALSE(trainers[to].error);
    for (std::uint32_t from = 0; from < kTrainers; ++from) {
      std::string expected;
      for (int round = 0; round < kRounds && from != to; ++round) expected += text(from, to, round);
      CHECK(trainers[to].got[from] == expected);
    }
  }
}

/// One of two trainers, which gives the other one an example.
class OneOfTwo {
 public:
  OneOfTwo(std::uint32_t rank, std::chrono::milliseconds patience)
      : rank_(rank), exchange_({"127.0.0.1", rank, 2, {secret(), "a test"}, patience}) {}

  void talk(const std::string& other) {
    const std::string own = endpoint();
    exchange_.set_endpoints(rank_ == 0 ? std::vector{own, other} : std::vector{other, own});
    std::vector<Parcel> parcels = {{1 - rank_, "an example of " + std::to_string(rank_)}};
    std::string got;
    exchange_.exchange([&] { return std::exchange(parcels, {}); },
                       [&](std::uint32_t, std::string_view bytes) { got += bytes; });
    CHECK(got == "an example of " + std::to_string(1 - rank_));
  }
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(exchange_.port()); }

 private:
  std::uint32_t rank_;
  GlobalShuffle exchange_;
};

/// The one that is connected to, in a thread of its own.
class FirstOfTwo {
 public:
  explicit FirstOfTwo(std::chrono::milliseconds patience) : trainer_(0, patience) {}
  ~FirstOfTwo() { thread_.join(); }
  FirstOfTwo(const FirstOfTwo&) = delete;
  FirstOfTwo& operator=(const FirstOfTwo&) = delete;
  std::string endpoint() const { return trainer_.endpoint(); }

 private:
  OneOfTwo trainer_;
  std::thread thread_{[this] {
    try {
      trainer_.talk("127.0.0.1:9");  // it is the other one that connects
    } catch (const Error&) {
      // That one is gone.
    }
  }};
};

TEST_CASE("tampering at any byte of an exchange gives an error or the right examples") {
  std::chrono::milliseconds patience{20'000};  // with the first, on whom nobody tampers
  tests::tamper_everywhere([&] { return std::make_unique<FirstOfTwo>(patience); },
                           [&](FirstOfTwo&, const std::string& endpoint) {
                             OneOfTwo(1, patience).talk(endpoint);
                             patience = std::chrono::milliseconds(300);
                           });
}

TEST_CASE("one alone has nobody to send to") {
  std::vector<Trainer> trainers = trainers_of(1);
  run(trainers, [](std::uint32_t) { return std::vector<Parcel>(); });
  CHECK_FALSE(trainers[0].error);
}

TEST_CASE("a trainer that dies meanwhile is an error of the others, not a wait") {
  std::vector<Trainer> trainers = trainers_of(3);
  std::vector<int> rounds(3);
  run(trainers, [&](std::uint32_t rank) -> std::vector<Parcel> {
    if (rank == 1 && rounds[rank] == 3) throw Error(ErrorKind::data, "it dies here");
    if (++rounds[rank] > 10) return {};
    return {{(rank + 1) % 3, std::string(1 << 20, 'x')}, {(rank + 2) % 3, std::string(1 << 20, 'x')}};
  });
  for (const std::uint32_t rank : {0U, 2U}) {
    REQUIRE(trainers[rank].error);
    CHECK(trainers[rank].error->kind() == ErrorKind::network);
    const std::string what = trainers[rank].error->what();
    CAPTURE(what);
    CHECK(what.starts_with("global_shuffle: trainer "));
    CHECK(what.ends_with(" has ended its connection"));
    CHECK(trainers[rank].error->hint() ==
          "look at its log; no examples are left in memory here: load them again");
  }
}

TEST_CASE("a trainer that never comes is missed by its name") {
  std::vector<Trainer> trainers = trainers_of(2, std::chrono::milliseconds(300));
  trainers[1].exchange = nullptr;
  run(trainers, [](std::uint32_t) { return std::vector<Parcel>(); });
  REQUIRE(trainers[0].error);
  CHECK(trainers[0].error->kind() == ErrorKind::network);
  CHECK(std::string(trainers[0].error->what()).starts_with("global_shuffle: trainer 1 at 127.0.0.1:"));
  CHECK(std::string(trainers[0].error->what()).find(" has not connected within ") != std::string::npos);
}

TEST_CASE("a trainer with another secret is refused") {
  std::vector<Trainer> trainers = trainers_of(2, std::chrono::milliseconds(300));
  std::vector<std::string> endpoints = {"127.0.0.1:" + std::to_string(trainers[0].exchange->port())};
  trainers[1].exchange = std::make_unique<GlobalShuffle>(GlobalShuffleOptions{
      "127.0.0.1", 1, 2, {Secret::from_bytes("another one, of thirty-two bytes"), "a test"}});
  endpoints.push_back("127.0.0.1:" + std::to_string(trainers[1].exchange->port()));
  for (Trainer& trainer : trainers) trainer.exchange->set_endpoints(endpoints);
  run(trainers, [](std::uint32_t) { return std::vector<Parcel>(); });
  REQUIRE(trainers[1].error);
  CHECK(trainers[1].error->kind() == ErrorKind::config);
  REQUIRE(trainers[0].error);
  CHECK(trainers[0].error->kind() == ErrorKind::network);
}

}  // namespace
}  // namespace fleetrun::runtime
