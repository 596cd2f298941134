#include "dataset/memory/redistribution.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

#include "dataset/memory/in_memory_dataset.h"
#include "dataset/memory/shuffle.h"
#include "dataset/memory/trainer_exchange.h"
#include "runtime/base/error.h"
#include "tests/unit/dataset/memory/examples.h"

namespace fleetrun::dataset {
namespace {

using namespace tests;
using Parcel = TrainerExchange::Parcel;

/// Hands over what was recorded of the other trainers, and records what this one sends.
class RecordedExchange : public TrainerExchange {
 public:
  RecordedExchange(std::uint32_t rank, std::uint32_t trainers) : rank_(rank), trainers_(trainers) {}
  std::uint32_t trainers() const noexcept override { return trainers_; }
  std::uint32_t rank() const noexcept override { return rank_; }
  void exchange(const std::function<std::vector<Parcel>()>& next,
                const std::function<void(std::uint32_t, std::string_view)>& take) override {
    for (std::vector<Parcel> parcels = next(); !parcels.empty(); parcels = next())
      sent.insert(sent.end(), parcels.begin(), parcels.end());
    for (const auto& [from, bytes] : arriving) take(from, bytes);
  }

  std::vector<Parcel> sent;
  std::vector<std::pair<std::uint32_t, std::string>> arriving;

 private:
  std::uint32_t rank_, trainers_;
};

constexpr LinePrefixes kIds{.id = true};

ExampleStore store_of(int first, int last) {
  std::string text;
  for (int i = first; i < last; ++i)
    text += "1 user" + std::to_string(i / 2) + " " + mixed_lines(i, i + 1, 3);
  ExampleStore store(mixed_slots(), kIds);
  store.add(parsed(mixed_slots(), text, kIds));
  return store;
}

/// The labels that each trainer has afterwards: all send first, and then all receive.
std::vector<std::vector<std::int64_t>> deal(std::uint32_t trainers, Destination destination,
                                            std::uint64_t seed,
                                            const std::function<void(Parcel&)>& spoil = {}) {
  constexpr int kEach = 3000;
  std::vector<RecordedExchange> exchanges;
  for (std::uint32_t t = 0; t < trainers; ++t) exchanges.emplace_back(t, trainers);
  const auto run = [&](std::uint32_t t) {
    ExampleStore store = store_of(static_cast<int>(t) * kEach, static_cast<int>(t + 1) * kEach);
    exchanges[t].sent.clear();
    return redistribute(store, exchanges[t], destination, seed);
  };
  for (std::uint32_t t = 0; t < trainers; ++t) {
    try {
      static_cast<void>(run(t));
    } catch (const Error&) {  // nothing has come yet
    }
  }
  for (std::uint32_t from = 0; from < trainers; ++from) {
    for (Parcel& parcel : exchanges[from].sent) {
      if (spoil) spoil(parcel);
      exchanges[parcel.trainer].arriving.emplace_back(from, parcel.bytes);
    }
  }
  std::vector<std::vector<std::int64_t>> out;
  for (std::uint32_t t = 0; t < trainers; ++t) {
    const ExampleStore mine = run(t);
    out.push_back(labels(gathered(mine, mine.numbers())));
  }
  return out;
}

TEST_CASE("every example goes to one trainer, and the seed says which") {
  for (const std::uint32_t trainers : {1U, 2U, 5U}) {
    CAPTURE(trainers);
    const auto dealt = deal(trainers, Destination::random, 7);
    std::multiset<std::int64_t> all;
    for (const auto& share : dealt) {
      all.insert(share.begin(), share.end());
      CHECK(share.size() > 2700);
      CHECK(share.size() < 3300);
    }
    CHECK(all.size() == 3000 * trainers);
    CHECK(std::set<std::int64_t>(all.begin(), all.end()).size() == 3000 * trainers);
    CHECK(deal(trainers, Destination::random, 7) == dealt);
    if (trainers > 1) CHECK(deal(trainers, Destination::random, 8) != dealt);
  }
}

TEST_CASE("by id an example goes where XXH64 of it says") {
  const auto dealt = deal(3, Destination::line_id, 7);
  std::size_t count = 0;
  for (std::size_t t = 0; t < 3; ++t) {
    for (const std::int64_t label : dealt[t]) CHECK(xxh64("user" + std::to_string(label / 2)) % 3 == t);
    count += dealt[t].size();
  }
  CHECK(count == 9000);
}

TEST_CASE("examples that do not come are missed, by the name of who sent them") {
  const auto what_of = [](const std::function<void(Parcel&)>& spoil) {
    try {
      static_cast<void>(deal(2, Destination::random, 7, spoil));
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto last = [](const Parcel& parcel) {
    return parcel.bytes.compare(0, 4, std::string(4, '\0')) == 0;
  };
  const std::string lost = what_of([&](Parcel& parcel) {
    if (parcel.trainer == 0 && last(parcel)) ++parcel.bytes[4];
  });
  CHECK(lost.starts_with("global_shuffle: trainer 1 sent "));
  CHECK(what_of([&](Parcel& parcel) {
          if (!last(parcel)) parcel.bytes.pop_back();
        }).starts_with("a block of examples is broken: "));
  CHECK(what_of([](Parcel& parcel) { parcel.bytes.resize(2); }) ==
        "trainer 1 sent a parcel of examples that ends early");
}

TEST_CASE("trainers with other slots are refused") {
  RecordedExchange exchange(0, 2);
  exchange.arriving.emplace_back(1, std::string("\1\0\0\0\2\0\0\0", 8));
  ExampleStore store = store_of(0, 4);
  try {
    static_cast<void>(redistribute(store, exchange, Destination::random, 1));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "trainer 1 has examples of 2 fields, this one of 5");
    CHECK(error.hint() == "give all trainers the same use_var and the same dataset settings");
  }
}

}  // namespace
}  // namespace fleetrun::dataset
