// The frames of many agents on the one standard output of srun. Pure.
//
// srun mixes what its tasks write, but keeps lines whole that are shorter than 1024 bytes. So the bytes of a
// task's agent travel as lines "~HOST BASE64", and are put together again by host; what is not such a line
// was written by somebody else (a prolog, a profile), and is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "launcher/remote/agent_channel.h"

namespace fleetrun::launcher {

constexpr std::size_t kLongestSrunLine = 1000;

/// `bytes` of the agent on `host`, as lines.
std::string srun_lines(std::uint32_t host, std::string_view bytes);

/// Lines → the frames of all agents one after the other, each with its host's number, after one marker: what
/// a single agent's channel looks like.
class SrunMerger {
 public:
  explicit SrunMerger(std::uint32_t hosts) : hosts_(hosts) {}

  /// Throws: Error(data) for a line of a host that is not there,
  /// for one that cannot be read, and for bytes that are not frames.
  std::string merge(std::string_view bytes);

 private:
  void merge_line(std::string_view line, std::string& frames);

  std::uint32_t hosts_;
  std::map<std::uint32_t, remote::ChannelDecoder> decoders_;
  std::string rest_;
  bool marked_ = false;
};

}  // namespace fleetrun::launcher
