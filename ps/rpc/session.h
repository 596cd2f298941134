// What makes a call on a connection provably the other side's: its session, the keys of which the handshake
// has made (runtime/secure/handshake), a number that is used once,
// and a code over the number, the method and the whole body.
//
//   request  metadata "fleetrun-proof-bin" = u64 session │ u64 number │ code[16] over method path, 0, body
//   answer   metadata "fleetrun-proof-bin" = code[16] over body, under the request's number
//
// A call that comes twice, that was changed, or that belongs to another connection changes nothing. Not
// covered without TLS: what is sent can be read by who sees the network,
// and an error's text could be changed there.
#pragma once

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/secure/handshake.h"
#include "runtime/secure/message_code.h"

namespace fleetrun::ps {

inline constexpr const char* kProofMetadata = "fleetrun-proof-bin";

using Pieces = std::span<const std::span<const std::byte>>;

/// What a request brings.
struct CallProof {
  std::uint64_t session = 0, number = 0;
  MessageCoder::Code code = {};
};
std::string to_text(const CallProof& proof);
/// nullopt: it is not of the form above.
std::optional<CallProof> parse_proof(std::string_view text) noexcept;

/// Which numbers have been there. They come in any order, as calls of many threads do,
/// but none is far behind.
class CallWindow {
 public:
  static constexpr std::uint64_t kWidth = 65536;
  /// True once for each number.
  bool take(std::uint64_t number);

 private:
  std::bitset<kWidth> seen_;
  std::uint64_t next_ = 0;  // above the highest that was taken
};

/// Threads: all calls may be made from several threads at once.
class ClientSession {
 public:
  explicit ClientSession(const SessionKeys& keys);

  CallProof prove(std::string_view method, std::span<const std::byte> body);
  /// Whether `code` shows that this is the server's answer to the call.
  bool is_answer(const CallProof& call, std::string_view code, Pieces body) const;

 private:
  std::uint64_t id_;
  MessageCoder requests_, answers_;
  std::atomic<std::uint64_t> next_ = 0;
};

class ServerSession {
 public:
  explicit ServerSession(const SessionKeys& keys);

  std::uint64_t id() const noexcept { return id_; }
  /// True for a call that is the client's and has not been there before.
  bool accept(const CallProof& call, std::string_view method, Pieces body);
  /// The code of the answer; one for each call.
  std::string prove(const CallProof& call, std::span<const std::byte> body) const;

 private:
  friend class Sessions;
  std::uint64_t id_;
  MessageCoder requests_, answers_;
  std::mutex mutex_;
  CallWindow window_;
};

/// The sessions of a server. One ends with its trainer's connection; of those that never got as far as that,
/// the one that was quiet longest gives way when there are kMax.
class Sessions {
 public:
  static constexpr std::size_t kMax = 16384;

  void add(std::shared_ptr<ServerSession> session);
  /// nullptr: there is none.
  std::shared_ptr<ServerSession> find(std::uint64_t id);
  /// Whether a trainer attends by it: then it stays until remove().
  void keep(std::uint64_t id, bool attends);
  void remove(std::uint64_t id);
  std::size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<ServerSession> session;  // shared with the calls under way
    std::uint64_t used = 0;
    bool kept = false;
  };
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t uses_ = 0;
};

}  // namespace fleetrun::ps
