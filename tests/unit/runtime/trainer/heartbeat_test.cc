#include "runtime/trainer/heartbeat.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

using namespace fleetrun;
using fleetrun::runtime::Heartbeat;
using fleetrun::runtime::report_lines;
using fleetrun::runtime::TrainingEvent;

namespace {

struct Channel {
  explicit Channel(int flags = O_NONBLOCK) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | flags) == 0);
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
  }
  std::string said() const {
    char text[256];
    const ssize_t count = ::read(ours.value(), text, sizeof text);
    return {text, count > 0 ? static_cast<std::size_t>(count) : 0};
  }
  Environ environ() const { return {{"FLEETRUN_HEARTBEAT_FD", std::to_string(theirs.value())}}; }

  UniqueFd ours, theirs;
};

}  // namespace

TEST_CASE("many beats of many threads at once are one") {
  const Channel channel;
  Heartbeat heartbeat(channel.environ());
  CHECK(heartbeat.is_heard());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { heartbeat.beat(); });
  }
  CHECK(channel.said() == "beat\n");
}

TEST_CASE("values are said in the words that fleetrun reads") {
  const TrainingEvent event{
      200, 100, 1000, {{"AUC: ", 0.5}, {"avg cost", std::nan("")}, {"损失", 2}, {"a=b", 1}}};
  CHECK(report_lines(event, 1200.5) ==
        "beat batch=200 examples_per_second=1200.5 AUC=0.5 avg_cost=nan 损失=2 a_b=1\n");
  TrainingEvent many{1, 1, 1, {}};
  for (int i = 0; i < 100; ++i)
    many.values.emplace_back("beat" + std::string(40, 'x') + std::to_string(i), i);
  const std::vector<std::string> lines = split(report_lines(many, 1), '\n');
  CHECK(lines.size() == 6);  // of 1024 bytes at most, and nothing behind the last
  for (const std::string& line : lines) CHECK(line.size() <= 1024);
  CHECK(lines[4].ends_with("x99=99"));
  const Channel channel;
  Heartbeat heartbeat(channel.environ());
  heartbeat.trained(10);
  CHECK(channel.said() == "beat\n");
  heartbeat.report(event);  // at once, though a beat has just been said
  CHECK(channel.said().starts_with("beat batch=200 examples_per_second="));
}

TEST_CASE("what is no channel is never written to") {
  const Channel blocking(0);
  const UniqueFd file(::open("/dev/null", O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  for (const std::string& number :
       {std::string(), std::string("x"), std::string("-1"), std::string("99999999999"),
        std::string("1000000"), std::to_string(blocking.theirs.value()), std::to_string(file.value()),
        std::to_string(Channel().theirs.value())}) {
    CAPTURE(number);
    Heartbeat heartbeat(Environ{{"FLEETRUN_HEARTBEAT_FD", number}});
    CHECK_FALSE(heartbeat.is_heard());
    heartbeat.beat();
  }
  CHECK_FALSE(Heartbeat(Environ()).is_heard());
}

TEST_CASE("a full channel costs nothing") {
  const Channel channel;
  const std::string block(4096, '\n');
  while (::write(channel.theirs.value(), block.data(), block.size()) > 0) {
  }
  Heartbeat heartbeat(channel.environ());
  heartbeat.beat();  // returns
  CHECK(channel.said() == std::string(256, '\n'));
}
