// Messages on a stream of bytes, one after the other. No I/O: bytes in, bytes out.
//
//   frame   u32 length │ body[length]        little-endian
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fleetrun {

/// What goes before a body of so many bytes.
std::string frame_head(std::size_t body_bytes);
/// Appends `body` as the next frame to `bytes`.
void append_frame(std::string_view body, std::string& bytes);

class FrameReader {
 public:
  explicit FrameReader(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Takes bytes as they come, in pieces of any size. Memory grows with what has come,
  /// not with what was announced.
  void receive(std::string_view bytes) { received_ += bytes; }
  /// The next message; nullopt: it is not all there. Valid until the next call of anything.
  /// Throws: Error(data) for a frame that is too long.
  std::optional<std::string_view> next();
  /// Whether the other side stopped within a frame.
  bool is_within_frame() const noexcept { return received_.size() > taken_; }

 private:
  std::size_t max_bytes_, taken_ = 0;
  std::string received_;
};

}  // namespace fleetrun
