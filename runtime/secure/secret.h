// What the launchers and processes of a job know and strangers do not:
// 32 bytes, from which everything else is derived.
//
// A secret is never printed and never sent: who has it proves that by HMAC (runtime/secure/handshake). In
// memory it has a page of its own, which core dumps leave out and which is wiped at the end. In a file it is
// 64 hexadecimal digits and a newline; 32 plain bytes and base64 are read too.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/secure/crypto.h"

namespace fleetrun {

class Environ;

class Secret {
 public:
  static constexpr std::size_t kBytes = 32;

  /// Throws: Error(host), like the next two.
  static Secret random();
  /// Throws: Error(config) unless there are 32 bytes that differ.
  static Secret from_bytes(std::string_view bytes);
  /// Another secret, from which this one cannot be found: HMAC-SHA256 under this one over `label`.
  Secret derive(std::string_view label) const;

  std::string_view bytes() const noexcept;
  /// Takes the same time whatever differs.
  bool operator==(const Secret& other) const noexcept {
    return equal_in_constant_time(bytes(), other.bytes());
  }

 private:
  class Page;
  explicit Secret(std::shared_ptr<const Page> page) : page_(std::move(page)) {}
  std::shared_ptr<const Page> page_;  // of all copies
};

/// Throws: Error(config) when it is missing, not a file, of another user, readable by others, or holds no
/// secret. A file of root's may be readable by its group: Kubernetes mounts secrets so.
Secret read_secret_file(const std::string& path);

/// A new file, readable by this user alone. Throws: Error(host), also when something is there already.
void write_secret_file(const std::string& path, const Secret& secret);

/// The user's own secret: $XDG_CONFIG_HOME/fleetrun/secret, else ~/.config/fleetrun/secret, which is made at
/// first use. Launchers that do so at the same time agree on one. `path` becomes its path, for messages.
/// Throws: Error(config) as read_secret_file() does, and where it can neither be read nor made.
Secret user_secret(const Environ& environment, std::string& path);

}  // namespace fleetrun
