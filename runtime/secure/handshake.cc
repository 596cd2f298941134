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
constexpr unsigned char kHasSecret = 1, kHasTls = 2;
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

std::string make_opening(const HandshakeSettings& settings) {
  std::string bytes(kMagic);
  bytes += static_cast<char>(settings.protocol & 0xFF);
  bytes += static_cast<char>(settings.protocol >> 8);
  put_short_text(bytes, settings.version);
  bytes += settings.side == Side::client ? 'C' : 'S';
  bytes += static_cast<char>((settings.secret ? kHasSecret : 0) | (settings.tls ? kHasTls : 0));
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
    : settings_(std::move(settings)), own_opening_(make_opening(settings_)) {
  if (settings_.side == Side::client) output_ = own_opening_;
}

std::size_t Handshake::receive(std::string_view bytes) {
  const std::size_t before = received_.size();
  received_ += bytes.substr(0, std::min<std::size_t>(bytes.size(), 1024));  // more than a handshake can be
  const std::size_t offered = received_.size() - before;
  const auto goes_on = [this] { return state_ == State::opening || state_ == State::record; };
  while (goes_on() && (state_ == State::opening ? take_opening() : take_record())) {
  }
  if (goes_on()) return offered;
  const std::size_t left = received_.size();  // TLS, or frames, that came right behind
  received_.clear();
  return offered - std::min(left, offered);
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
  if (settings_.tls)
    state_ = State::binding;
  else
    make_session("");
  return true;
}

void Handshake::bind(const std::string& binding) {
  if (wants_binding()) make_session(binding);
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
  const bool peer_has_secret = (peer.flags & kHasSecret) != 0, peer_has_tls = (peer.flags & kHasTls) != 0;
  const auto mismatch = [&](bool peer_has_it, const char* flag, std::string hint) {
    throw Error(ErrorKind::config,
                settings_.peer + " runs " + (peer_has_it ? "with " : "without ") + flag + ", and this host " +
                    (peer_has_it ? "without" : "with") + " it",
                std::move(hint));
  };
  if (peer_has_secret != settings_.secret.has_value())
    mismatch(!peer_has_secret, "--insecure", "leave --insecure out everywhere, or give it on all hosts");
  if (peer_has_tls != settings_.tls) mismatch(peer_has_tls, "--tls", "give --tls on all hosts, or on none");
}

Digest Handshake::labelled(std::string_view label) {
  return session_->of({label});
}

void Handshake::make_session(std::string_view binding) {
  const bool is_client = settings_.side == Side::client;
  const std::string_view secret = settings_.secret ? settings_.secret->bytes() : kKnownKey;
  Digest session = KeyedHash(secret).of({"fleetrun handshake", is_client ? own_opening_ : peer_opening_,
                                         is_client ? peer_opening_ : own_opening_,
                                         defends("proof bound to its channel") ? binding : ""});
  session_.emplace(view(session));
  wipe(session);
  keys_.to_peer = labelled(is_client ? "client to server" : "server to client");
  keys_.from_peer = labelled(is_client ? "server to client" : "client to server");
  if (!is_client) output_ += std::string{kProof, kDigestBytes} + std::string(view(labelled("server proof")));
  state_ = State::record;
}

bool Handshake::take_record() {
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
  session_.reset();
  state_ = State::finished;
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
