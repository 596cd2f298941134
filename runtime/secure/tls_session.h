// TLS between two ends that have the same secret, for those who do not want others to read along (--tls). No
// I/O: bytes in, bytes out. OpenSSL's libssl is loaded when the first identity is made.
//
// The authority of a job is a key that is derived from its secret: whoever has the secret can vouch for
// itself, and nobody else can. Each launcher draws a key of its own, and signs its certificate with the
// authority's. Both ends show their certificates and demand the other's (TLS 1.3 only). Certificates say
// nothing about names and times: hosts are proven by the secret, and clocks differ.
// Nothing is written to a file.
//
// Who has the secret is proven again inside, by runtime/secure/handshake,
// which binding() ties to just this channel.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/secure/handshake.h"
#include "runtime/secure/secret.h"

namespace fleetrun {

/// A launcher's key and certificate, for all its connections. Threads: may be shared.
class TlsIdentity {
 public:
  /// nullopt: an authority that everybody knows (--insecure): nobody passing by reads along, and nothing is
  /// proven. Throws: Error(host) where libssl is missing.
  static std::shared_ptr<const TlsIdentity> make(const std::optional<Secret>& secret);

  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;
  ~TlsIdentity();

 private:
  friend class TlsSession;
  struct Parts;
  explicit TlsIdentity(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

class TlsSession {
 public:
  TlsSession(Side side, std::shared_ptr<const TlsIdentity> identity);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  /// Takes what came from the network; what it says is in plain() afterwards.
  /// Throws: Error(config) where the other side's certificate is of another secret, Error(data) for anything
  /// that is not TLS. What output() has then is still to be sent.
  void receive(std::string_view bytes);
  /// Takes what is to be said to the other side. Only when established.
  void write(std::string_view plain);

  /// Bytes for the network, and bytes from the other side: each handed out once.
  std::string output();
  std::string plain() { return std::exchange(plain_, {}); }

  bool established() const noexcept { return established_; }
  /// 32 bytes that only the two ends of this channel have (RFC 5705).
  std::string binding() const;

 private:
  struct Parts;
  void advance();
  [[noreturn]] void fail() const;

  std::shared_ptr<const TlsIdentity> identity_;  // of all sessions of the launcher
  std::unique_ptr<Parts> parts_;
  std::string plain_;
  bool established_ = false;
};

}  // namespace fleetrun
