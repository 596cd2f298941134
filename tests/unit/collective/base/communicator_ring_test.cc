#include "collective/base/communicator_ring.h"

#include <doctest/doctest.h>

#include <string>

using namespace fleetrun;
using namespace fleetrun::collective;

namespace {

/// Writes down which member was asked for what.
class Member : public Communicator {
 public:
  Member(std::string& log, char name, Place place = {"world", 1, 4})
      : log_(log), name_(name), place_(std::move(place)) {}

  const Place& place() const noexcept override { return place_; }
  void run(const Call&) override { (log_ += name_) += 'r'; }
  std::unique_ptr<Work> start(const Call&) override {
    (log_ += name_) += 's';
    return nullptr;
  }
  void abort(const Error&) noexcept override { (log_ += name_) += 'a'; }

 private:
  std::string& log_;
  char name_;
  Place place_;
};

std::vector<std::unique_ptr<Communicator>> members(std::string& log, const std::string& names) {
  std::vector<std::unique_ptr<Communicator>> all;
  for (const char name : names) all.push_back(std::make_unique<Member>(log, name));
  return all;
}

}  // namespace

TEST_CASE("call i goes to communicator i mod n") {
  for (const auto& [names, expected] :
       {std::pair{"a", "arasarasar"}, {"ab", "arbsarbsar"}, {"abc", "arbscrasbr"}}) {
    std::string log;
    CommunicatorRing ring(members(log, names));
    CHECK(ring.place().rank == 1);
    CHECK(ring.place().size == 4);
    for (int i = 0; i < 5; ++i) {
      if (i % 2 == 0)
        ring.run({});
      else
        ring.start({});
    }
    CHECK(log == expected);
  }
}

TEST_CASE("all members are aborted") {
  std::string log;
  CommunicatorRing ring(members(log, "abc"));
  ring.abort(Error(ErrorKind::network, "over"));
  CHECK(log == "aabaca");
}

TEST_CASE("a ring of none, or of different places, is refused") {
  std::string log;
  CHECK_THROWS_WITH_AS(CommunicatorRing({}), "a ring of 0 communicators", Error);
  auto mixed = members(log, "a");
  mixed.push_back(std::make_unique<Member>(log, 'b', Place{"world", 2, 4}));
  CHECK_THROWS_WITH_AS(
      CommunicatorRing(std::move(mixed)),
      "a ring of communicators: this process is rank 1 of 4 in one and rank 2 of 4 in another", Error);
}
