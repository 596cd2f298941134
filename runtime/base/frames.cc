#include "runtime/base/frames.h"

#include "runtime/base/codec.h"
#include "runtime/base/defences.h"
#include "runtime/base/error.h"

namespace fleetrun {
namespace {

constexpr std::size_t kHead = 4;
constexpr std::size_t kKept = 65'536;  // of memory, by a connection on which nothing is on its way

}  // namespace

std::string frame_head(std::size_t body_bytes) {
  codec::Writer head;
  head.number(static_cast<std::uint32_t>(body_bytes));
  return head.take();
}

void append_frame(std::string_view body, std::string& bytes) {
  bytes.append(frame_head(body.size())).append(body);
}

std::optional<std::string_view> FrameReader::next() {
  if (taken_ == received_.size() ||
      taken_ > kKept) {  // not at every frame: what is left would be moved each time
    received_.erase(0, taken_);
    taken_ = 0;
    if (received_.empty() && received_.capacity() > kKept) received_.shrink_to_fit();
  }
  const std::string_view rest = std::string_view(received_).substr(taken_);
  if (rest.size() < kHead) return std::nullopt;
  std::uint32_t length = 0;
  codec::Reader(rest).number(length);
  if (length > max_bytes_ && defends("longest message"))
    throw Error(ErrorKind::data, "a message of " + std::to_string(length) + " bytes: at most " +
                                     std::to_string(max_bytes_) + " are taken");
  if (rest.size() - kHead < length) return std::nullopt;
  taken_ += kHead + length;
  return rest.substr(kHead, length);
}

}  // namespace fleetrun
