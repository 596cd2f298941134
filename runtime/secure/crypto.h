// What fleetrun needs of cryptography: HMAC-SHA256,
// and a comparison that takes the same time whatever differs.
//
// The kernel gives the random bytes; the rest is OpenSSL's libcrypto, which is loaded when it is first
// needed: a job on one host never needs it. Every function may be called from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fleetrun {

constexpr std::size_t kDigestBytes = 32;
using Digest = std::array<unsigned char, kDigestBytes>;

/// 32 bytes. Throws: Error(host) where libcrypto is missing.
std::string hmac_sha256(std::string_view key, std::string_view data);

/// False at once when the lengths differ, which are not secret;
/// otherwise after the same time for all contents.
bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

/// Overwrites the bytes, and no compiler leaves that out.
void wipe(std::span<unsigned char> bytes) noexcept;
void wipe(std::string& text) noexcept;

/// HMAC-SHA256 under one key, for many messages: what depends on the key is computed once.
class KeyedHash {
 public:
  explicit KeyedHash(std::string_view key);
  KeyedHash(KeyedHash&&) noexcept;
  KeyedHash& operator=(KeyedHash&&) noexcept;
  ~KeyedHash();

  /// Over `parts`, one after the other; nothing says where one ends. Throws: Error(host).
  Digest of(std::initializer_list<std::string_view> parts);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace fleetrun
