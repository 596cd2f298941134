// Any bytes, as what an agent sends to its controller or a controller to an agent: the frames that are found
// do not depend on how the bytes are cut, and each of them, and each order in one, is written as it was read.
//
// The first byte chooses the cut, and whether a marker is awaited.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/remote/agent_channel.h"
#include "launcher/remote/launch_order.h"
#include "launcher/remote/launcher_lines.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher::remote;

namespace {

constexpr std::size_t kLongest = 1 << 16;

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "agent_channel_fuzz: %s\n", what);
  std::abort();
}

struct Found {
  std::vector<Addressed> frames;
  bool refused = false;
  bool operator==(const Found&) const = default;
};

Found frames_of(std::string_view bytes, std::size_t piece, bool marker) {
  ChannelDecoder decoder(kLongest, marker);
  Found found;
  try {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      decoder.append(bytes.substr(at, piece));
      while (auto frame = decoder.next()) found.frames.push_back(std::move(*frame));
    }
  } catch (const Error&) {
    found.refused = true;
  }
  return found;
}

void check_order(const std::string& bytes) {
  try {
    if (encode(decode_order(bytes)) != bytes) {
      // A map is written in its own order: reading what was written has to give the same.
      if (decode_order(encode(decode_order(bytes))) != decode_order(bytes))
        broken("an order changes on its way");
    }
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool marker = (data[0] & 1) != 0;
  const Found whole = frames_of(bytes, bytes.size() + 1, marker);
  if (frames_of(bytes, 1 + data[0] / 2, marker) != whole) broken("frames depend on how the bytes are cut");
  for (const Addressed& frame : whole.frames) {
    ChannelDecoder again(kLongest + 64, false);
    again.append(encode(frame));
    if (again.next() != frame) broken("a frame changes on its way");
    if (const auto* order = std::get_if<Order>(&frame.message)) check_order(order->bytes);
  }
  check_order(std::string(bytes));
  LauncherLines lines;
  lines.take(bytes);
  if (lines.screen().size() > (std::size_t{64} << 10)) broken("a screen is longer than it may be");
  return 0;
}
