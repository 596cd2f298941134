#include "collective/store/store_state.h"

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::collective;

namespace {

using Kind = StoreMessage::Kind;
using Outputs = std::vector<StoreState::Output>;

StoreMessage hello(int rank, int size = 3, const std::string& attempt = "run 1") {
  return {Kind::hello, 1, rank, attempt, std::to_string(size)};
}

/// Of three ranks, whose clients are 10, 11 and 12.
struct ThreeRanks : StoreState {
  ThreeRanks() : StoreState(3, "run 1") {
    for (int rank = 0; rank < 3; ++rank) receive(10 + static_cast<Client>(rank), hello(rank));
  }
};

void check_refused(const Outputs& outputs, ErrorKind kind, const std::string& what) {
  REQUIRE(outputs.size() == 1);
  CHECK(outputs[0].message.kind == Kind::refused);
  CHECK(static_cast<ErrorKind>(outputs[0].message.number) == kind);
  CHECK(outputs[0].message.name == what);
}

std::vector<int> ranks_in(const std::string& gathered) {
  std::vector<int> ranks;
  for (const auto& [rank, value] : decode_gathered(gathered)) ranks.push_back(rank);
  return ranks;
}

}  // namespace

TEST_CASE("a message is read as it was written, and nothing else is read") {
  const StoreMessage message{Kind::set, 7, -3, "name", std::string("a\0b", 3)};
  const std::string bytes = encode(message);
  CHECK(decode_store_message(bytes) == message);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(decode_store_message(bytes.substr(0, size)), Error);
  CHECK_THROWS_WITH(decode_store_message(bytes + "x"),
                    "a message of the job's store has bytes after its end");
  CHECK_THROWS_WITH(decode_store_message("\x7f" + bytes.substr(1)),
                    "a message of kind 127 for the job's store");
}

TEST_CASE("a rank is let in once, with the size and the start of the job that rank 0 knows") {
  StoreState store_state(3, "run 1");
  CHECK(store_state.receive(10, hello(0)) == Outputs{{10, {Kind::answer, 1, 0, {}, {}}}});
  check_refused(store_state.receive(11, hello(0)), ErrorKind::config, "rank 0 is here already");
  check_refused(store_state.receive(11, hello(1, 4)), ErrorKind::config,
                "rank 1 has come to a job of 4 ranks, and rank 0 serves one of 3");
  check_refused(store_state.receive(11, hello(1, 3, "run 0")), ErrorKind::config,
                "rank 1 is of run 0, and rank 0 of run 1");
  check_refused(store_state.receive(11, hello(3)), ErrorKind::config, "3 is not a rank of a job of 3");
  CHECK(store_state.receive(11, hello(1)).size() == 1);
  store_state.end(11, "its process has ended");
  check_refused(store_state.receive(12, hello(1)), ErrorKind::config, "rank 1 is here already");
}

TEST_CASE("who has not said hello, or says it twice, is thrown out") {
  ThreeRanks store_state;
  CHECK_THROWS_AS(store_state.receive(99, {Kind::set, 1, 0, "a", "b"}), Error);
  CHECK_THROWS_AS(store_state.receive(10, hello(0)), Error);
  CHECK_THROWS_AS(store_state.receive(10, {Kind::answer, 1, 0, {}, {}}), Error);
}

TEST_CASE("a value is set once; who waits for it is answered then, and nobody who has given up or is gone") {
  ThreeRanks store_state;
  CHECK(store_state.receive(10, {Kind::wait, 2, 0, "a", {}}).empty());
  CHECK(store_state.receive(11, {Kind::wait, 2, 0, "a", {}}).empty());
  CHECK(store_state.receive(12, {Kind::wait, 2, 0, "a", {}}).empty());
  CHECK(store_state.receive(10, {Kind::forget, 0, 2, {}, {}}).empty());
  store_state.end(11, "");
  CHECK(store_state.receive(12, {Kind::set, 3, 0, "a", "v"}) ==
        Outputs{{12, {Kind::answer, 3, 0, {}, {}}}, {12, {Kind::answer, 2, 0, {}, "v"}}});
  CHECK(store_state.receive(10, {Kind::wait, 3, 0, "a", {}}) == Outputs{{10, {Kind::answer, 3, 0, {}, "v"}}});
  CHECK(store_state.receive(10, {Kind::set, 4, 0, "a", "v"}) == Outputs{{10, {Kind::answer, 4, 0, {}, {}}}});
  check_refused(store_state.receive(10, {Kind::set, 5, 0, "a", "w"}), ErrorKind::config,
                "the ranks disagree on a: 'v' and 'w'");
}

TEST_CASE("a counter begins at 0") {
  ThreeRanks store_state;
  CHECK(store_state.receive(10, {Kind::add, 2, 5, "n", {}})[0].message.number == 5);
  CHECK(store_state.receive(11, {Kind::add, 2, -7, "n", {}})[0].message.number == -2);
  CHECK(store_state.receive(11, {Kind::add, 3, 1, "m", {}})[0].message.number == 1);
}

TEST_CASE("a gathering is answered when all have come, and says before whom it waits for") {
  ThreeRanks store_state;
  CHECK(store_state.receive(11, {Kind::gather, 5, 0, "meet", "b"}).empty());
  const Outputs missing = store_state.receive(11, {Kind::missing, 6, 0, "meet", {}});
  CHECK(ranks_in(missing.at(0).message.value) == std::vector<int>{0, 2});
  CHECK(store_state.receive(10, {Kind::gather, 5, 0, "meet", "a"}).empty());
  const Outputs all = store_state.receive(12, {Kind::gather, 5, 0, "meet", "c"});
  REQUIRE(all.size() == 3);
  for (const StoreState::Output& one : all)
    CHECK(decode_gathered(one.message.value) == std::map<int, std::string>{{0, "a"}, {1, "b"}, {2, "c"}});
  check_refused(store_state.receive(12, {Kind::gather, 6, 0, "meet", "c"}), ErrorKind::config,
                "rank 2 comes to meet for the second time");
}

TEST_CASE("a rank that ends without leaving is news to all others, and to those that come later") {
  StoreState store_state(3, "run 1");
  store_state.receive(10, hello(0));
  store_state.receive(11, hello(1));
  CHECK(store_state.end(11, "its process has ended") ==
        Outputs{{10, {Kind::lost, 0, 1, {}, "its process has ended"}}});
  const Outputs outputs = store_state.receive(12, hello(2));
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[1].message == StoreMessage{Kind::lost, 0, 1, {}, "its process has ended"});
  CHECK(store_state.end(99, "").empty());  // one that never said hello
}

TEST_CASE("a rank that leaves is no loss") {
  ThreeRanks store_state;
  const Outputs outputs = store_state.receive(11, {Kind::leave, 4, 0, {}, {}});
  REQUIRE(outputs.size() == 3);
  CHECK(outputs[0].message.kind == Kind::answer);
  CHECK(outputs[1].message.kind == Kind::left);
  CHECK(store_state.end(11, "its process has ended").empty());
}

TEST_CASE("a gathering of all fails when one is lost; one of the living goes on without it") {
  ThreeRanks store_state;
  store_state.receive(10, {Kind::gather, 5, 0, "meet", "a"});
  store_state.receive(10, {Kind::gather, 6, 1, "survivors", "a"});
  store_state.receive(12, {Kind::gather, 6, 1, "survivors", "c"});
  const Outputs outputs = store_state.end(11, "its process has ended");
  int refused = 0, answered = 0;
  for (const StoreState::Output& output : outputs) {
    if (output.message.kind == Kind::refused) {
      ++refused;
      CHECK(output.message.name == "rank 1 ended before all ranks had joined");
    }
    if (output.message.kind == Kind::answer) {
      ++answered;
      CHECK(ranks_in(output.message.value) == std::vector<int>{0, 2});
    }
  }
  CHECK(refused == 1);
  CHECK(answered == 2);
  const Outputs late = store_state.receive(12, {Kind::gather, 7, 0, "meet", "c"});
  REQUIRE(late.size() == 1);
  CHECK(late[0].message.kind == Kind::refused);
}

TEST_CASE("who has come to a gathering of the living and dies before its end is not among them") {
  ThreeRanks store_state;
  store_state.receive(11, {Kind::gather, 6, 1, "survivors", "b"});
  store_state.receive(12, {Kind::gather, 6, 1, "survivors", "c"});
  store_state.end(11, "");
  const Outputs outputs = store_state.receive(10, {Kind::gather, 6, 1, "survivors", "a"});
  REQUIRE(outputs.size() == 2);
  CHECK(ranks_in(outputs[0].message.value) == std::vector<int>{0, 2});
}

TEST_CASE("an announcement goes to all others") {
  ThreeRanks store_state;
  CHECK(
      store_state.receive(11, {Kind::announce, 0, 0, "group", "why"}) ==
      Outputs{{10, {Kind::announced, 0, 1, "group", "why"}}, {12, {Kind::announced, 0, 1, "group", "why"}}});
}
