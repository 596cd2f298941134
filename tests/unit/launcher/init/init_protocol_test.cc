#include "launcher/init/init_protocol.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

std::vector<Frame> one_of_each() {
  SetupFrame held;
  held.containment = ContainmentLevel::pidns;
  held.required = ContainmentLevel::subreaper;
  StartFrame start;
  start.index = 7;
  start.program = "/bin/sh";
  start.argv = {"sh", "-c", std::string("x\0y", 3)};
  start.environment = {"A=1", "B="};
  start.cwd = "/tmp";
  start.has_stdin = true;
  start.controls_stdin = true;
  start.passed = {3, 17};
  start.cpus = {0, 63, 64};
  start.memory_nodes = {1};
  start.alone = true;
  return {SetupFrame{"abcdef", {"/a", "/b"}, {"/c"}, 1024, {}, {}},
          held,
          start,
          StartFrame{},
          SignalFrame{3, 15, true},
          SweepFrame{4},
          FinishFrame{true},
          LeftRunningFrame{{"dd (pid 7)"}, 2},
          ToldToEndFrame{},
          ContainedFrame{"cgroup2", "/sys/fs/cgroup/x", "no namespaces", 77},
          StartedFrame{1, 4242, 123456789012345},
          FailedFrame{2, "exec", 13},
          ExitedFrame{5, 4242, 0x0900, 123456789012345, 5000000},
          SweptFrame{4},
          UnkillableFrame{4243, "dd", "D", "nfs_wait"},
          EmptiedFrame{}};
}

}  // namespace

TEST_CASE("every frame comes back as it was, however the bytes are cut") {
  const std::vector<Frame> frames = one_of_each();
  std::string bytes;
  for (const Frame& frame : frames) bytes += encode(frame);
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameDecoder decoder;
    std::vector<Frame> seen;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      decoder.append(std::string_view(bytes).substr(at, piece));
      while (auto frame = decoder.next()) seen.push_back(*frame);
    }
    REQUIRE(seen == frames);
  }
}

TEST_CASE("bytes that are not frames are refused, not believed") {
  for (std::string bytes :
       {std::string("\0\0\0\0", 4), std::string("\xff\xff\xff\xff", 4), std::string("\1\0\0\0\x63", 5)}) {
    FrameDecoder decoder;
    decoder.append(bytes);
    CHECK_THROWS_AS(decoder.next(), Error);
  }
  // Every frame, with each byte in turn made large: an answer or an Error, never a crash or a huge
  // allocation.
  for (const Frame& frame : one_of_each()) {
    const std::string whole = encode(frame);
    for (std::size_t i = 4; i < whole.size(); ++i) {
      std::string bytes = whole;
      bytes[i] = '\x7f';
      FrameDecoder decoder;
      decoder.append(bytes);
      try {
        const bool whole_frame = decoder.next().has_value();
        CHECK(whole_frame);
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::data);
      }
    }
  }
}

TEST_CASE("containment levels are ordered, and each has a name") {
  for (const auto level : {ContainmentLevel::subreaper, ContainmentLevel::cgroup2, ContainmentLevel::pidns})
    CHECK(parse_containment_level(to_string(level)) == level);
  CHECK_FALSE(parse_containment_level("auto"));
  CHECK_FALSE(parse_containment_level(""));
  CHECK(ContainmentLevel::subreaper < ContainmentLevel::cgroup2);
  CHECK(ContainmentLevel::cgroup2 < ContainmentLevel::pidns);
}
