#include <doctest/doctest.h>

#include "ps/sync/meeting.h"
#include "tests/support/meeting_answer.h"

using namespace fleetrun::ps;
using namespace fleetrun::tests;
using fleetrun::Error;

namespace {

// A meeting that keeps its events as a log does.
struct Kept {
  std::vector<Bytes> log;
  int done = 0;
  Meeting meeting{"server 0",
                  2,
                  {[](const std::vector<Contribution>&) {}, [this] { ++done; }, kept_in(log),
                   [](const std::function<void()>& answer) { answer(); }}};

  void replay(const std::vector<Bytes>& events) {
    for (const Bytes& event : events) {
      Reader reader(event.bytes());
      meeting.replay(read_meeting_event(reader));
      REQUIRE(reader.remaining() == 0);
    }
  }
};

Bytes description_of(const Meeting& meeting) {
  Bytes out;
  meeting.describe([&](const Bytes& bytes) { out = bytes; });
  return out;
}

std::vector<std::byte> bytes_of(const Bytes& bytes) {
  return {bytes.bytes().begin(), bytes.bytes().end()};
}

void meet(Kept& kept) {
  kept.meeting.update({2, true, {{0, "a"}, {1, "b"}, {2, "c"}}});
  kept.meeting.hello({0, 10, 2, "a"});
  kept.meeting.hello({1, 11, 2, "b"});
  kept.meeting.hello({2, 12, 2, "c"});
  Answer ignored;
  for (const std::uint32_t t : {0u, 1u, 2u})
    kept.meeting.gather(Meeting::Kind::begin_pass, t, {2.0}, ignored.respond(), 1);
  kept.meeting.leave_pass({1, 0}, 1);
  for (const std::uint32_t t : {0u, 1u, 2u})
    kept.meeting.gather(Meeting::Kind::all_reduce, t, {1.5}, ignored.respond(), 1);
  kept.meeting.lost(2, 12);
  kept.meeting.goodbye(1);
}

}  // namespace

TEST_CASE("what has happened, told again, makes the same meeting; so does its description") {
  Kept before;
  meet(before);
  Kept replayed;
  replayed.replay(before.log);
  CHECK(bytes_of(description_of(replayed.meeting)) == bytes_of(description_of(before.meeting)));
  CHECK(replayed.log.size() + 0 <= before.log.size());
  Kept restored;
  const Bytes description = description_of(before.meeting);
  Reader reader(description.bytes());
  restored.meeting.restore(reader);
  CHECK(reader.remaining() == 0);
  CHECK(bytes_of(description_of(restored.meeting)) == bytes_of(description));
}

TEST_CASE("a description or event that is cut short is refused") {
  Kept before;
  meet(before);
  const Bytes description = description_of(before.meeting);
  for (std::size_t size = 0; size < description.bytes().size(); ++size) {
    Meeting meeting("server 0", 2, {});
    Reader reader(description.bytes().first(size));
    CHECK_THROWS_AS(meeting.restore(reader), Error);
  }
  for (const Bytes& event : before.log) {
    for (std::size_t size = 0; size < event.bytes().size(); ++size) {
      Reader reader(event.bytes().first(size));
      CHECK_THROWS_AS(read_meeting_event(reader), Error);
    }
  }
}

TEST_CASE(
    "after a restart who was here is away; who comes back goes on, and a sum that is over is answered "
    "again") {
  Kept before;
  before.meeting.hello({0, 10});
  before.meeting.hello({1, 11});
  Answer first, second;
  before.meeting.gather(Meeting::Kind::all_reduce, 0, {1.0}, first.respond(), 1);
  before.meeting.gather(Meeting::Kind::all_reduce, 1, {2.0}, second.respond(), 1);
  CHECK(first.value == 3.0);
  Kept after;
  after.replay(before.log);
  CHECK(after.meeting.go_on() == std::vector<ClientId>{{0, 10}, {1, 11}});
  CHECK_THROWS_AS(after.meeting.require(0, 10), Error);
  after.meeting.hello({0, 10, 0, "", 5});
  after.meeting.require(0, 10);
  CHECK(after.meeting.rounds(0) == Meeting::Rounds{0, 1, 0});
  Answer again;
  after.meeting.gather(Meeting::Kind::all_reduce, 0, {1.0}, again.respond(), 1);
  CHECK(again.value == 3.0);
  // The other is waited for, until it was given up.
  Answer next;
  after.meeting.gather(Meeting::Kind::barrier, 0, {}, next.respond(), 1);
  CHECK(next.text == "nothing");
  SUBCASE("it comes back") {
    after.meeting.hello({1, 11, 0, "", 6});
    CHECK_FALSE(after.meeting.give_up(1, 11, 0));
    Answer other;
    after.meeting.gather(Meeting::Kind::barrier, 1, {}, other.respond(), 1);
    CHECK(next.text == "ok");
  }
  SUBCASE("it does not") {
    CHECK(after.meeting.give_up(1, 11, 0));
    CHECK(next.text == "trainer 1 is gone: its connection to server 0 ended without a goodbye");
  }
}

TEST_CASE("the end of an old connection is not that of the trainer") {
  Kept kept;
  kept.meeting.hello({0, 10, 0, "", 5});
  kept.meeting.hello({0, 10, 0, "", 6});
  CHECK_FALSE(kept.meeting.leave_for_now(0, 10, 5));
  CHECK(kept.meeting.leave_for_now(0, 10, 6));
  CHECK_FALSE(kept.meeting.give_up(0, 10, 5));
  CHECK(kept.meeting.give_up(0, 10, 6));
}
