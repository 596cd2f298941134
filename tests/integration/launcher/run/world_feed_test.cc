// The feed over real pipes, on a loop that the test turns.
#include "launcher/run/world_feed.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/base/unique_fd.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

struct Job final : JobControl {
  boost::asio::io_context context;
  Plan the_plan;
  std::vector<LogFile> the_logs;

  boost::asio::io_context& loop() override { return context; }
  const Plan& plan() const override { return the_plan; }
  const std::vector<LogFile>& logs() const override { return the_logs; }
  void send_signal(std::size_t, int) override {}
  void request_stop(bool) override {}
  void report_hang(const event::HangFound&) override {}
  void heard(const MemberSaid&) override {}
  void want(const CountWanted&) override {}
  void tell(const JobEvent&) override {}
  void turn() {
    context.restart();
    context.poll();
  }
};

World world_of(std::uint64_t generation, std::size_t members = 1) {
  World world;
  world.generation = generation;
  world.members.resize(members);
  for (std::size_t i = 0; i < members; ++i) world.members[i].offer = {"10.0.0.1", {6170}, {}, 0};
  return world;
}

/// Starts process `index` as the supervisor does; the process's end of its pipe.
UniqueFd start(JobPart& part, std::size_t index) {
  CHECK(part.open_descriptor(kHeartbeatVariable, index) == -1);
  UniqueFd fd(::fcntl(part.open_descriptor(kWorldVariable, index), F_DUPFD_CLOEXEC, 3));
  CHECK((::fcntl(fd.value(), F_GETFL) & O_NONBLOCK) != 0);
  part.on_event(event::ProcessStarted{index, 1, 0, 0});
  return fd;
}

/// Takes what is there, at most `max` bytes; "end" when there will be no more.
std::string take(const UniqueFd& fd, std::size_t max = 1 << 20) {
  std::string text(max, '\0');
  const ssize_t count = ::read(fd.value(), text.data(), max);
  if (count == 0) return "end";
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

}  // namespace

TEST_CASE("a process is told the world at its start and every world that follows") {
  Job job;
  const auto feed = make_world_feed(true);
  const auto part = feed->part()(job);
  const UniqueFd early = start(*part, 0);
  CHECK(take(early).empty());
  feed->publish(world_of(1), 0);
  CHECK(take(early) == world_line(world_of(1), 0, true));
  const UniqueFd late = start(*part, 3);
  CHECK(take(late) == world_line(world_of(1), 0, true));
  feed->publish(world_of(2), 0);
  feed->publish(world_of(3), 0);
  for (const UniqueFd* fd : {&early, &late})
    CHECK(take(*fd) == world_line(world_of(2), 0, true) + world_line(world_of(3), 0, true));
}

TEST_CASE(
    "nobody waits for a process that does not read, and what it reads later ends with the newest world") {
  Job job;
  const auto feed = make_world_feed(false);
  const auto part = feed->part()(job);
  const UniqueFd lazy = start(*part, 0);
  const UniqueFd eager = start(*part, 1);
  for (std::uint64_t generation = 1; generation <= 3000; ++generation) {
    feed->publish(world_of(generation, 10), 0);
    job.turn();
    CHECK(take(eager) == world_line(world_of(generation, 10), 0, false));
  }
  std::string all;
  for (std::string piece = take(lazy); !piece.empty(); piece = take(lazy)) {
    all += piece;
    job.turn();
  }
  const std::string newest = world_line(world_of(3000, 10), 0, false);
  REQUIRE(all.size() > newest.size());
  CHECK(all.ends_with("\n" + newest));
  // Its pipe held the first ones, the one that did not fit whole was finished,
  // and those in between were left out.
  CHECK(all.starts_with(world_line(world_of(1, 10), 0, false)));
  CHECK(all.size() < (std::size_t{64} << 10) + 3 * newest.size());
}

TEST_CASE("a world that is longer than a pipe arrives whole, piece by piece") {
  Job job;
  const auto feed = make_world_feed(true);
  const auto part = feed->part()(job);
  const UniqueFd fd = start(*part, 0);
  const World large = world_of(1, 5000);
  feed->publish(large, 0);
  const std::string line = world_line(large, 0, true);
  REQUIRE(line.size() > 200'000);
  std::string all;
  for (std::string piece = take(fd, 5000); !piece.empty(); piece = take(fd, 5000)) {
    all += piece;
    job.turn();
  }
  CHECK(all == line);
}

TEST_CASE("the channel of a process ends with it, with the part, and when the process closes it") {
  Job job;
  const auto feed = make_world_feed(true);
  auto part = feed->part()(job);
  const UniqueFd dead = start(*part, 0);
  UniqueFd closed = start(*part, 1);
  const UniqueFd alive = start(*part, 2);
  part->on_event(event::ProcessExited{0, 1, 0, {}, false, 0, 0});
  CHECK(take(dead) == "end");
  closed.reset();
  struct sigaction before = {};
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;  // as fleetrun does
  REQUIRE(::sigaction(SIGPIPE, &ignore, &before) == 0);
  feed->publish(world_of(1), 0);
  feed->publish(world_of(2), 0);
  ::sigaction(SIGPIPE, &before, nullptr);
  CHECK(take(alive) == world_line(world_of(1), 0, true) + world_line(world_of(2), 0, true));
  part.reset();
  CHECK(take(alive) == "end");
  feed->publish(world_of(3), 0);
}
