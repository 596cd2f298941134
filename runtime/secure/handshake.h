// How two ends of a connection prove to each other that they have the same secret,
// without sending it. No I/O: bytes in, bytes out.
//
//   client                                            server
//     opening: "FLEETRUN", protocol, version,  ─────→
//              role, flags, nonce, purpose
//                                              ←─────   opening, of the same form
//     with TLS: from here on everything is within it (runtime/secure/tls_session)
//                                              ←─────   proof
//     proof                                    ─────→
//     sealed frames                            ←────→   sealed frames (runtime/secure/sealed_frames)
//
//   opening   "FLEETRUN" │ u16 protocol │ u8 n, version[n] │ u8 role 'C' or 'S' │ u8 flags │ nonce[32]
//             │ u8 n, purpose[n]
//   proof     u8 1 │ u8 32 │ HMAC(session, "server proof" or "client proof")
//   refusal   u8 2 │ u8 1  │ u8 reason, before the connection is closed
//   session = HMAC(secret, "fleetrun handshake" │ client's opening │ server's opening │ binding)
//
// All integers are little-endian. What is above the flags never changes, so that ends of different protocols
// can name each other. Both nonces are in the session's key, therefore nothing of one connection is worth
// anything in another; roles and labels differ by direction, therefore nothing can be sent back to where it
// came from. `binding` stands for a TLS channel below (its exported key): who sits between two such channels
// has two of them. The flags are in the session's key, too, and have to be equal: nobody can talk two ends
// out of TLS or of their secret. Without a secret (--insecure) the same is done under a key that everybody
// knows: it proves nothing, and finds bytes that changed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/secure/crypto.h"
#include "runtime/secure/secret.h"

namespace fleetrun {

/// Changes with every change of what launchers say to each other, here or in their messages.
constexpr std::uint16_t kProtocol = 1;

enum class Side { client, server };

struct HandshakeSettings {
  Side side = Side::client;
  std::optional<Secret> secret;  // nullopt: --insecure
  std::string secret_source;     // its file, for messages
  std::string purpose;  // what the connection is for: keeps services with one secret apart; 255 bytes at most
  std::string version;  // of this fleetrun
  std::string peer;     // for messages: "10.0.0.2:4711"
  bool tls = false;
  std::uint16_t protocol = kProtocol;
};

/// Of both directions. Wiped at the end.
struct SessionKeys {
  Digest to_peer = {}, from_peer = {};
  SessionKeys() = default;
  SessionKeys(const SessionKeys&) = default;
  SessionKeys& operator=(const SessionKeys&) = default;
  ~SessionKeys() {
    wipe(to_peer);
    wipe(from_peer);
  }
};

class Handshake {
 public:
  /// Throws: Error(host) where libcrypto is missing.
  explicit Handshake(HandshakeSettings settings);

  /// Takes from the beginning of `bytes` what belongs to the handshake, and says how much.
  /// Call again with more until finished().
  /// Throws: Error(config) where the two can never agree (their secrets, versions or settings differ),
  /// Error(data) for bytes that no fleetrun sends. What output() has then is still to be sent, so that the
  /// other side can say why, too.
  std::size_t receive(std::string_view bytes);

  /// Bytes for the other side, handed out once.
  std::string output() { return std::exchange(output_, {}); }

  /// With TLS, once both openings are there: nothing more is taken until bind() is called.
  bool wants_binding() const noexcept { return state_ == State::binding; }
  /// `binding`: what only the two ends of the TLS channel have in common.
  void bind(const std::string& binding);

  bool finished() const noexcept { return state_ == State::finished; }
  /// Nothing came yet that only a fleetrun would send.
  bool is_stranger() const noexcept { return stranger_; }
  /// What it says where the secrets differ, for a TLS channel below that finds that out first.
  Error secret_differs() const;
  /// Of a finished handshake.
  const SessionKeys& keys() const noexcept { return keys_; }

 private:
  enum class State { opening, binding, record, finished };
  struct Peer;

  bool take_opening();
  bool take_record();
  void check(const Peer& peer) const;
  void make_session(std::string_view binding);
  void take_proof(std::string_view proof);
  Digest labelled(std::string_view label);

  HandshakeSettings settings_;
  std::string own_opening_, peer_opening_, received_, output_;
  std::optional<KeyedHash> session_;
  SessionKeys keys_;
  State state_ = State::opening;
  bool stranger_ = true;
};

}  // namespace fleetrun
