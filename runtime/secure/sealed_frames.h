// Messages over an authenticated connection: nobody between the two ends can change, leave out, repeat or
// reorder one without being noticed. No I/O: bytes in, bytes out.
//
//   frame   u32 length │ body[length] │ seal[16]        integers little-endian
//   seal = the first 16 bytes of HMAC-SHA256(key of the direction, u64 number │ u32 length │ body)
//
// Frames of a direction are numbered from 0; the number is not sent. What is sent can be read by who sees the
// network, unless there is TLS below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/secure/crypto.h"

namespace fleetrun {

struct SessionKeys;

constexpr std::size_t kFrameOverhead = 20;

class FrameSealer {
 public:
  explicit FrameSealer(const Digest& key);
  /// Appends `body` as the next frame to `bytes`.
  void seal(std::string_view body, std::string& bytes);
  /// The same without a copy of the body: what goes before it is appended to `before`,
  /// and what follows it to `after`.
  void seal_apart(std::string_view body, std::string& before, std::string& after);

 private:
  KeyedHash hash_;
  std::uint64_t number_ = 0;
};

class FrameOpener {
 public:
  FrameOpener(const Digest& key, std::size_t max_bytes);

  /// Takes bytes as they come, in pieces of any size. Memory grows with what has come,
  /// not with what was announced.
  void receive(std::string_view bytes) { received_ += bytes; }
  /// The next message; nullopt: it is not all there. Valid until the next call of anything.
  /// Throws: Error(data) for a frame that is too long, or not the one that the other side sent at this place.
  std::optional<std::string_view> next();
  /// Whether the other side stopped within a frame.
  bool is_within_frame() const noexcept { return received_.size() > taken_; }

 private:
  KeyedHash hash_;
  std::uint64_t number_ = 0;
  std::size_t max_bytes_, taken_ = 0;
  std::string received_;
};

}  // namespace fleetrun
