// Codes by which both ends of a connection know that a message is the other's, whole, and not one that was
// there before: GMAC (NIST SP 800-38D) with AES-256, which checks several gigabytes a second,
// so that it can cover all that is sent.
//
// Each message has a number of its own under its key: two different messages with the same (purpose, number)
// give the key away. libcrypto is loaded when the first one is made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace fleetrun {

class MessageCoder {
 public:
  static constexpr std::size_t kKeyBytes = 32;
  using Code = std::array<unsigned char, 16>;

  /// Throws: Error(host) where libcrypto is missing; Error(config) for a key of another length.
  explicit MessageCoder(std::string_view key);
  ~MessageCoder();
  MessageCoder(const MessageCoder&) = delete;
  MessageCoder& operator=(const MessageCoder&) = delete;

  /// The code of the parts, one after the other; nothing says where one ends. `purpose` tells apart messages
  /// that have the same number: what is asked and what is answered.
  ///
  /// Threads: any number at once. Throws: Error(host).
  Code of(std::uint32_t purpose, std::uint64_t number,
          std::span<const std::span<const std::byte>> parts) const;
  /// Whether `code` is that of the parts; takes the same time whatever differs.
  bool is_of(std::string_view code, std::uint32_t purpose, std::uint64_t number,
             std::span<const std::span<const std::byte>> parts) const;

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace fleetrun
