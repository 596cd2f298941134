#include "runtime/secure/handshake.h"

#include <algorithm>
#include <utility>

#include "runtime/base/defences.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/text.h"

namespace fleetrun {
namespace {

constexpr std::string_view kMagic = "FLEETRUN";
constexpr std::size_t kNonceBytes = 32, kShortText = 255;
constexpr unsigned char kHasSecret = 1, kIsSealed = 2;
constexpr char kProof = 1, kRefusal = 2;
constexpr char kSecretDiffers = 1;
constexpr std::string_view kKnownKey = "fleetrun without a secret";

std::string_view view(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

void put_short_text(std::string& bytes, std::string_view text) {
  text = text.substr(0, kShortText);
  bytes += static_cast<char>(text.size());
  bytes += text;
}

std::string make_opening(const HandshakeSettings& settings, bool is_sealed) {
  std::string bytes(kMagic);
  bytes += static_cast<char>(settings.protocol & 0xFF);
  bytes += static_cast<char>(settings.protocol >> 8);
  put_short_text(bytes, settings.version);
  bytes += settings.side == Side::client ? 'C' : 'S';
  bytes += static_cast<char>((settings.secret ? kHasSecret : 0) | (is_sealed ? kIsSealed : 0));
  bytes += defends("fresh nonces") ? random_bytes(kNonceBytes) : std::string(kNonceBytes, 'n');
  put_short_text(bytes, settings.purpose);
  return bytes;
}

/// Reads fields from the beginning of bytes that may not be all there yet.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  bool complete() const noexcept { return complete_; }
  std::size_t taken() const noexcept { return taken_; }
  std::string_view take(std::size_t count) {
    if (!complete_ || bytes_.size() - taken_ < count) {
      complete_ = false;
      return {};
    }
    taken_ += count;
    return bytes_.substr(taken_ - count, count);
  }
  unsigned take_byte() {
    const std::string_view byte = take(1);
    return byte.empty() ? 0 : static_cast<unsigned char>(byte[0]);
  }
  std::string_view take_short_text() { return take(take_byte()); }

 private:
  std::string_view bytes_;
  std::size_t taken_ = 0;
  bool complete_ = true;
};

std::string how_to_share(const std::string& source) {
  return "copy the same file to every host (with mode 0600), and name it with --secret-file where it is "
         "not " +
         (source.empty() ? "in ~/.config/fleetrun" : source) + "; launchers need one --job_id, too";
}

}  // namespace

/// What the other side says of itself.
struct Handshake::Peer {
  unsigned protocol = 0;
  std::string_view version, purpose;
  unsigned role = 0, flags = 0;
};

Handshake::Handshake(HandshakeSettings settings)
    : settings_(std::move(settings)), own_opening_(make_opening(settings_, is_sealed())) {
  if (settings_.side == Side::client) output_ = own_opening_;
}

bool Handshake::is_sealed() const noexcept {
  return settings_.secret && !settings_.is_local && defends("sealed records");
}

std::size_t Handshake::receive(std::string_view bytes) {
  const std::size_t before = received_.size();
  received_ += bytes.substr(0, std::min<std::size_t>(bytes.size(), 1024));  // more than the proofs can be
  const std::size_t offered = received_.size() - before;
  while (advance()) {
  }
  if (!finished()) return offered;
  const std::size_t left = received_.size();  // what came right behind
  received_.clear();
  return offered - std::min(left, offered);
}

bool Handshake::advance() {
  if (state_ == State::opening) return take_opening();
  if (state_ == State::proof) return take_message();
  if (state_ == State::records) establish_records();
  return false;
}

void Handshake::establish_records() {
  std::string_view rest = received_;
  try {
    records_->establish(rest, output_);
  } catch (const Error& error) {
    throw Error(error.kind(), settings_.peer + ": " + error.what(), error.hint());
  }
  received_.erase(0, received_.size() - rest.size());
  if (records_->established()) state_ = State::finished;
}

bool Handshake::take_opening() {
  const std::size_t seen = std::min(received_.size(), kMagic.size());
  if (std::string_view(received_).substr(0, seen) != kMagic.substr(0, seen))
    throw Error(ErrorKind::data, settings_.peer + " is not fleetrun: it begins with '" +
                                     printable(std::string_view(received_).substr(0, 16)) + "'");
  Fields fields(received_);
  fields.take(kMagic.size());
  Peer peer;
  peer.protocol = fields.take_byte();
  peer.protocol |= fields.take_byte() << 8;
  peer.version = fields.take_short_text();
  if (!fields.complete()) return false;
  stranger_ = false;
  // From here on it is answered, so that both sides can name both versions.
  if (peer.protocol != settings_.protocol) {
    if (settings_.side == Side::server) output_ += own_opening_;
    check(peer);
  }
  peer.role = fields.take_byte();
  peer.flags = fields.take_byte();
  fields.take(kNonceBytes);
  peer.purpose = fields.take_short_text();
  if (!fields.complete()) return false;
  if (settings_.side == Side::server) output_ += own_opening_;
  check(peer);
  peer_opening_ = received_.substr(0, fields.taken());
  received_.erase(0, fields.taken());
  make_session();
  return true;
}

void Handshake::check(const Peer& peer) const {
  if (peer.protocol != settings_.protocol)
    throw Error(ErrorKind::config,
                settings_.peer + " runs fleetrun " + printable(peer.version, 40) + " (protocol " +
                    std::to_string(peer.protocol) + "), and this host fleetrun " + settings_.version +
                    " (protocol " + std::to_string(settings_.protocol) + ")",
                "install the same fleetrun on all hosts");
  const unsigned char other_role = settings_.side == Side::client ? 'S' : 'C';
  if (peer.role != other_role)
    throw Error(ErrorKind::data, settings_.peer + " has the wrong part: two launchers dialled each other");
  if (peer.purpose != settings_.purpose)
    throw Error(ErrorKind::config,
                settings_.peer + " is there for '" + printable(peer.purpose) + "', not for '" +
                    settings_.purpose + "'",
                "name the port of the job's rendezvous");
  const bool peer_has_secret = (peer.flags & kHasSecret) != 0;
  if (peer_has_secret != settings_.secret.has_value())
    throw Error(ErrorKind::config,
                settings_.peer + " runs " + (peer_has_secret ? "without" : "with") +
                    " --insecure, and this host " + (peer_has_secret ? "with" : "without") + " it",
                "leave --insecure out everywhere, or give it on all hosts");
  if (((peer.flags & kIsSealed) != 0) != is_sealed())
    throw Error(ErrorKind::data, settings_.peer + " does not seal what it sends, where both ends have to");
}

Digest Handshake::labelled(std::string_view label) {
  return session_->of({label});
}

void Handshake::make_session() {
  const bool is_client = settings_.side == Side::client;
  const std::string_view secret = settings_.secret ? settings_.secret->bytes() : kKnownKey;
  Digest session = KeyedHash(secret).of({"fleetrun handshake", is_client ? own_opening_ : peer_opening_,
                                         is_client ? peer_opening_ : own_opening_});
  session_.emplace(view(session));
  wipe(session);
  if (!is_client) output_ += std::string{kProof, kDigestBytes} + std::string(view(labelled("server proof")));
  state_ = State::proof;
}

bool Handshake::take_message() {
  Fields fields(received_);
  const unsigned type = fields.take_byte(), size = fields.take_byte();
  const bool known = (type == kProof && size == kDigestBytes) || (type == kRefusal && size == 1);
  if (fields.complete() && !known)
    throw Error(ErrorKind::data, settings_.peer + " sent something else than its proof");
  const std::string body(fields.take(size));
  if (!fields.complete()) return false;
  received_.erase(0, fields.taken());
  if (type == kProof) {
    take_proof(body);
    return true;
  }
  if (body[0] != kSecretDiffers)
    throw Error(ErrorKind::config, settings_.peer + " does not want to talk to this host, for reason " +
                                       std::to_string(static_cast<unsigned char>(body[0])));
  throw secret_differs();
}

void Handshake::take_proof(std::string_view proof) {
  const bool is_client = settings_.side == Side::client;
  const Digest expected = labelled(is_client ? "server proof" : "client proof");
  if (defends("proof of the secret") && !equal_in_constant_time(proof, view(expected))) {
    output_ += std::string{kRefusal, 1, kSecretDiffers};
    throw secret_differs();
  }
  if (is_client) output_ += std::string{kProof, kDigestBytes} + std::string(view(labelled("client proof")));
  Digest key = labelled("records");
  session_.reset();
  state_ = is_sealed() ? State::records : State::finished;
  if (is_sealed()) records_.emplace(settings_.side, view(key));
  wipe(key);
}

Error Handshake::secret_differs() const {
  if (!settings_.secret)
    return Error(ErrorKind::data, settings_.peer + " sent a proof that does not belong to this connection");
  return Error(ErrorKind::config,
               settings_.peer + " has another secret than this host" +
                   (settings_.secret_source.empty() ? "" : " (" + settings_.secret_source + ")"),
               how_to_share(settings_.secret_source));
}

}  // namespace fleetrun
