#include "launcher/remote/srun_lines.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/base64.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kBytesOfLine = 720;  // 960 of base64

}  // namespace

std::string srun_lines(std::uint32_t host, std::string_view bytes) {
  std::string lines;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kBytesOfLine)))
    lines.append("~" + std::to_string(host) + " " + base64(bytes.substr(0, kBytesOfLine)) + "\n");
  return lines;
}

std::string SrunMerger::merge(std::string_view bytes) {
  std::string frames;
  rest_.append(bytes);
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
    merge_line(std::string_view(rest_).substr(begin, end - begin), frames);
  rest_.erase(0, begin);
  if (rest_.size() > remote::kLongestNoise) rest_.clear();  // a line of ours is never as long
  return frames;
}

void SrunMerger::merge_line(std::string_view line, std::string& frames) {
  const std::size_t blank = line.starts_with('~') ? line.find(' ') : std::string_view::npos;
  const auto host = blank == std::string_view::npos ? std::nullopt : parse_integer(line.substr(1, blank - 1));
  if (!host) return;
  const auto bytes = from_base64(line.substr(blank + 1));
  if (*host < 0 || *host >= hosts_ || !bytes)
    throw Error(ErrorKind::data, "srun passed on a line that no agent wrote: " + printable(line, 80));
  const auto number = static_cast<std::uint32_t>(*host);
  auto decoder = decoders_.try_emplace(number, remote::kLongestReport, true).first;
  decoder->second.append(*bytes);
  while (auto frame = decoder->second.next()) {
    frame->host = number;
    if (!std::exchange(marked_, true)) frames.append(remote::kMarker);
    frames.append(remote::encode(*frame));
  }
}

}  // namespace fleetrun::launcher
