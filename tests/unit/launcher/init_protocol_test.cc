#include "launcher/init_protocol.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

std::vector<Frame> one_of_each() {
  return {SetupFrame{"abcdef", {"/a", "/b"}, {"/c"}, 1024},
          StartFrame{7, "/bin/sh", {"sh", "-c", std::string("x\0y", 3)}, {"A=1", "B="}, "/tmp", true},
          SignalFrame{3, 15, true},
          FinishFrame{},
          ContainedFrame{"cgroup2", "/sys/fs/cgroup/x"},
          StartedFrame{1, 4242},
          FailedFrame{2, "exec", 13},
          ExitedFrame{5, 0x0900, 123456789012345},
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
