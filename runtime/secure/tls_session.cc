#include "runtime/secure/tls_session.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "runtime/base/defences.h"
#include "runtime/base/error.h"
#include "runtime/secure/tls_library.h"

namespace fleetrun {
namespace {

constexpr std::string_view kKnownKey = "fleetrun without a secret";
constexpr std::string_view kBindingLabel = "EXPORTER-fleetrun-channel";
constexpr std::size_t kBindingBytes = 32, kPiece = 16'384;
constexpr char kAuthorityName[] = "fleetrun job";
constexpr long kVersion3 = 2;  // of a certificate, as it is written in one
constexpr int kText = 0x1001;  // MBSTRING_ASC

template <class Type, auto member>
struct Freed {
  void operator()(Type* object) const { (lib_ssl().*member)(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, &LibSsl::EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509, &LibSsl::X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION, &LibSsl::X509_EXTENSION_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX, &LibSsl::SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL, &LibSsl::SSL_free>>;

std::string last_reason() {
  const unsigned long code = lib_ssl().ERR_peek_error();
  const char* reason = code ? lib_ssl().ERR_reason_error_string(code) : nullptr;
  return reason ? reason : "no reason given";
}

void checked(bool done, const char* what) {
  if (!done) throw Error(ErrorKind::host, std::string("libssl refused ") + what + ": " + last_reason());
}

Key key_of(std::string_view seed) {
  Key key(lib_ssl().EVP_PKEY_new_raw_private_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(seed.data()), seed.size()));
  checked(key != nullptr, "a key");
  return key;
}

/// The key of the job's authority, the same on every host.
Key authority_key(const std::optional<Secret>& secret) {
  if (secret) return key_of(secret->derive("tls authority").bytes());
  return key_of(hmac_sha256(kKnownKey, "tls authority"));
}

void name(X509* certificate, const char* subject) {
  const auto* text = reinterpret_cast<const unsigned char*>(subject);
  checked(lib_ssl().X509_NAME_add_entry_by_txt(lib_ssl().X509_get_subject_name(certificate), "CN", kText,
                                               text, -1, -1, 0) == 1,
          "a name");
}

/// Of `subject` with `key`, signed by the authority.
Certificate certificate_of(const char* subject, EVP_PKEY* key, EVP_PKEY* authority, bool is_authority) {
  const LibSsl& lib = lib_ssl();
  Certificate certificate(lib.X509_new());
  checked(certificate != nullptr, "a certificate");
  X509* raw = certificate.get();
  checked(lib.X509_set_version(raw, kVersion3) == 1 &&
              lib.ASN1_INTEGER_set(lib.X509_get_serialNumber(raw), is_authority ? 1 : 2) == 1 &&
              lib.ASN1_TIME_set_string(lib.X509_getm_notBefore(raw), "19700101000000Z") == 1 &&
              lib.ASN1_TIME_set_string(lib.X509_getm_notAfter(raw), "99991231235959Z") == 1 &&
              lib.X509_set_pubkey(raw, key) == 1,
          "a certificate");
  name(raw, subject);
  Certificate issuer(lib.X509_new());
  checked(issuer != nullptr, "a certificate");
  name(issuer.get(), kAuthorityName);
  checked(lib.X509_set_issuer_name(raw, lib.X509_get_subject_name(issuer.get())) == 1, "an issuer");
  const char* constraints = is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE";
  Extension extension(lib.X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, constraints));
  checked(extension && lib.X509_add_ext(raw, extension.get(), -1) == 1, "an extension");
  checked(lib.X509_sign(raw, authority, nullptr) > 0, "a signature");
  return certificate;
}

}  // namespace

struct TlsIdentity::Parts {
  Context context;
};

TlsIdentity::TlsIdentity(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TlsIdentity::~TlsIdentity() = default;

std::shared_ptr<const TlsIdentity> TlsIdentity::make(const std::optional<Secret>& secret) {
  const LibSsl& lib = lib_ssl();
  const Key authority = authority_key(secret), own = key_of(Secret::random().bytes());
  const Certificate root = certificate_of(kAuthorityName, authority.get(), authority.get(), true);
  const Certificate leaf = certificate_of("fleetrun launcher", own.get(), authority.get(), false);
  auto parts = std::make_unique<Parts>();
  parts->context.reset(lib.SSL_CTX_new(lib.TLS_method()));
  SSL_CTX* context = parts->context.get();
  checked(context &&
              lib.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr) == 1 &&
              lib.SSL_CTX_use_certificate(context, leaf.get()) == 1 &&
              lib.SSL_CTX_use_PrivateKey(context, own.get()) == 1 &&
              lib.X509_STORE_add_cert(lib.SSL_CTX_get_cert_store(context), root.get()) == 1 &&
              lib.X509_STORE_set_flags(lib.SSL_CTX_get_cert_store(context), X509_V_FLAG_NO_CHECK_TIME) == 1 &&
              lib.SSL_CTX_set_num_tickets(context, 0) == 1,
          "the settings of TLS");
  constexpr int kBoth = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  lib.SSL_CTX_set_verify(context, defends("certificates of the secret") ? kBoth : SSL_VERIFY_NONE, nullptr);
  return std::shared_ptr<const TlsIdentity>(new TlsIdentity(std::move(parts)));
}

struct TlsSession::Parts {
  Session session;
  BIO* from_network = nullptr;  // both belong to the session
  BIO* to_network = nullptr;
};

TlsSession::TlsSession(Side side, std::shared_ptr<const TlsIdentity> identity)
    : identity_(std::move(identity)), parts_(std::make_unique<Parts>()) {
  const LibSsl& lib = lib_ssl();
  parts_->session.reset(lib.SSL_new(identity_->parts_->context.get()));
  parts_->from_network = lib.BIO_new(lib.BIO_s_mem());
  parts_->to_network = lib.BIO_new(lib.BIO_s_mem());
  checked(parts_->session && parts_->from_network && parts_->to_network, "a session");
  SSL* session = parts_->session.get();
  lib.SSL_set_bio(session, parts_->from_network, parts_->to_network);
  if (side == Side::server) {
    lib.SSL_set_accept_state(session);
  } else {
    lib.SSL_set_connect_state(session);
    advance();  // it speaks first
  }
}
TlsSession::~TlsSession() = default;

void TlsSession::receive(std::string_view bytes) {
  const LibSsl& lib = lib_ssl();
  while (!bytes.empty()) {
    const int size = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
    const int taken = lib.BIO_write(parts_->from_network, static_cast<const void*>(bytes.data()), size);
    checked(taken > 0, "bytes of the network");
    bytes.remove_prefix(static_cast<std::size_t>(taken));
  }
  advance();
}

void TlsSession::advance() {
  const LibSsl& lib = lib_ssl();
  SSL* session = parts_->session.get();
  lib.ERR_clear_error();
  if (!established_) {
    const int result = lib.SSL_do_handshake(session);
    if (result != 1) {
      if (lib.SSL_get_error(session, result) != SSL_ERROR_WANT_READ) fail();
      return;
    }
    established_ = true;
  }
  char piece[kPiece];
  for (;;) {
    const int count = lib.SSL_read(session, static_cast<void*>(piece), static_cast<int>(sizeof piece));
    if (count > 0) {
      plain_.append(piece, static_cast<std::size_t>(count));
      continue;
    }
    const int error = lib.SSL_get_error(session, count);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_ZERO_RETURN) fail();
    return;
  }
}

void TlsSession::fail() const {
  const LibSsl& lib = lib_ssl();
  const int reason = ERR_GET_REASON(lib.ERR_peek_error());
  const bool refused_there =
      reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA || reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR;
  const bool refused_here = lib.SSL_get_verify_result(parts_->session.get()) != X509_V_OK;
  if (refused_here || refused_there)
    throw Error(ErrorKind::config, "its certificate is not of the same secret");
  throw Error(ErrorKind::data, "TLS: " + last_reason());
}

void TlsSession::write(std::string_view plain) {
  const LibSsl& lib = lib_ssl();
  lib.ERR_clear_error();
  while (!plain.empty()) {
    const int size = static_cast<int>(std::min<std::size_t>(plain.size(), INT_MAX));
    const int taken = lib.SSL_write(parts_->session.get(), static_cast<const void*>(plain.data()), size);
    if (taken <= 0) fail();
    plain.remove_prefix(static_cast<std::size_t>(taken));
  }
}

std::string TlsSession::output() {
  const LibSsl& lib = lib_ssl();
  std::string bytes(lib.BIO_ctrl_pending(parts_->to_network), '\0');
  if (bytes.empty()) return bytes;
  const int count =
      lib.BIO_read(parts_->to_network, static_cast<void*>(bytes.data()), static_cast<int>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max(count, 0)));
  return bytes;
}

std::string TlsSession::binding() const {
  unsigned char bytes[kBindingBytes] = {};
  checked(lib_ssl().SSL_export_keying_material(
              parts_->session.get(), bytes, sizeof bytes, kBindingLabel.data(), kBindingLabel.size(),
              static_cast<const unsigned char*>(nullptr), std::size_t{0}, 0) == 1,
          "the binding of a channel");
  return {reinterpret_cast<const char*>(bytes), sizeof bytes};
}

}  // namespace fleetrun
