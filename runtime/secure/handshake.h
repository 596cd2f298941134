// How two ends of a connection prove to each other that they have the same secret,
// without sending it. No I/O: bytes in, bytes out.
//
//   client                                            server
//     opening: "FLEETRUN", protocol, version,  ─────→
//              role, flags, nonce, purpose
//                                              ←─────   opening, of the same form
//                                              ←─────   proof
//     proof                                    ─────→
//     records                                  ←────→   records, which seal all that follows
//
//   opening   "FLEETRUN" │ u16 protocol │ u8 n, version[n] │ u8 role 'C' or 'S' │ u8 flags │ nonce[32]
//             │ u8 n, purpose[n]
//   proof     u8 1 │ u8 32 │ HMAC(session, "server proof" or "client proof")
//   refusal   u8 2 │ u8 1  │ u8 reason, before the connection is closed
//   session = HMAC(secret, "fleetrun handshake" │ client's opening │ server's opening)
//   records   of runtime/secure/record_layer, under HMAC(session, "records")
//
// All integers are little-endian. What is above the flags never changes, so that ends of different protocols
// can name each other. Both nonces are in the session's key, therefore nothing of one connection is worth
// anything in another; roles and labels differ by direction, therefore nothing can be sent back to where it
// came from. Who passes the proofs on from one end to the other has no key to speak with afterwards. The
// flags are in the session's key, too, and have to be equal: nobody can talk two ends out of their secret or
// of records. Without a secret (--insecure) the same is done under a key that everybody knows, which proves
// nothing, and nothing is sealed; nor is it between processes of one host whom the kernel has told apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/secure/crypto.h"
#include "runtime/secure/record_layer.h"
#include "runtime/secure/secret.h"

namespace fleetrun {

/// Changes with every change of what processes of a job say to each other, here or in their messages.
constexpr std::uint16_t kProtocol = 2;

struct HandshakeSettings {
  Side side = Side::client;
  std::optional<Secret> secret;  // nullopt: --insecure
  std::string secret_source;     // its file, for messages
  std::string purpose;  // what the connection is for: keeps services with one secret apart; 255 bytes at most
  std::string version;  // of this fleetrun
  std::string peer;     // for messages: "10.0.0.2:4711"
  bool is_local = false;  // a unix socket whose other end is known to be this user's: no records
  std::uint16_t protocol = kProtocol;
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

  bool finished() const noexcept { return state_ == State::finished; }
  /// Nothing came yet that only a fleetrun would send.
  bool is_stranger() const noexcept { return stranger_; }
  /// Of a finished handshake: what seals the connection from now on. nullopt: nothing does.
  std::optional<RecordLayer> take_records() { return std::move(records_); }

 private:
  enum class State { opening, proof, records, finished };
  struct Peer;

  bool advance();
  bool take_opening();
  bool take_message();
  void check(const Peer& peer) const;
  bool is_sealed() const noexcept;
  void make_session();
  void take_proof(std::string_view proof);
  void establish_records();
  Digest labelled(std::string_view label);
  Error secret_differs() const;

  HandshakeSettings settings_;
  std::string own_opening_, peer_opening_, received_, output_;
  std::optional<KeyedHash> session_;
  std::optional<RecordLayer> records_;
  State state_ = State::opening;
  bool stranger_ = true;
};

}  // namespace fleetrun
