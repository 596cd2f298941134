// Records between two ends that share a key: whoever sits between them can read nothing, and not a byte that
// was changed, left out, repeated, moved or added is taken. No I/O: bytes in, bytes out.
//
// It is OpenSSL's TLS 1.3 (RFC 8446) with the key as an external pre-shared one: no certificates, names or
// clocks, and fresh keys for each connection, so that who learns the secret later cannot read what was
// recorded. AES-128-GCM, or ChaCha20-Poly1305 where the client's processor has no instructions for AES. A
// record carries 16 KiB at most, and 22 bytes more. libssl is loaded when the first one is made.
//
// The key comes from runtime/secure/handshake, after which everything that crosses hosts is in records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fleetrun {

enum class Side { client, server };

class RecordLayer {
 public:
  /// After so many records the keys change (RFC 8446, 5.5: 24 million at most).
  static constexpr std::uint64_t kRecordsOfKey = std::uint64_t{1} << 22;

  /// `key`: 32 bytes that only the two ends have, for this connection alone. The client speaks first.
  /// Throws: Error(host) where libssl is missing.
  RecordLayer(Side side, std::string_view key, std::uint64_t records_of_key = kRecordsOfKey);
  RecordLayer(RecordLayer&&) noexcept;
  RecordLayer& operator=(RecordLayer&&) noexcept;
  ~RecordLayer();

  /// The first messages: takes what it needs from the front of `bytes`, and appends what is to be sent to
  /// `out`, until established(). Throws: Error(data) for what the other end has not sent; what `out` has then
  /// may still be sent.
  void establish(std::string_view& bytes, std::string& out);
  bool established() const noexcept;

  /// Afterwards: opens records at the front of `bytes`, takes them away, and says how much of `into` has
  /// what the other end said; 0: more bytes have to come first. Of `bytes` something is left only where
  /// `into` is full. Throws: Error(data) as establish() does. What it gave before was the other end's.
  std::size_t open(std::string_view& bytes, std::span<std::byte> into);
  /// Whether open() would give something without bytes.
  bool has_opened() const noexcept;
  /// Whether what was given to open() ended within a record.
  bool is_within_record() const noexcept;
  /// Appends what is to be said to `out`, in records.
  void seal(std::span<const std::byte> plain, std::string& out);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace fleetrun
