#include "runtime/secure/record_layer.h"

#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "runtime/base/defences.h"
#include "runtime/base/error.h"
#include "runtime/secure/crypto.h"
#include "runtime/secure/ssl_library.h"

namespace fleetrun {
namespace {

constexpr std::string_view kIdentity = "fleetrun";  // of the key: there is one
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
constexpr std::size_t kRecord = 16'384;

struct FreeSession {
  void operator()(SSL* session) const { lib_ssl().SSL_free(session); }
};

[[noreturn]] void refuse_library(const char* what) {
  const unsigned long code = lib_ssl().ERR_peek_error();
  const char* reason = code ? lib_ssl().ERR_reason_error_string(code) : nullptr;
  throw Error(ErrorKind::host,
              std::string("libssl refused ") + what + ": " + (reason ? reason : "no reason given"),
              "check the system's OpenSSL configuration (openssl.cnf): it has to allow TLS 1.3");
}

void checked(bool done, const char* what) {
  if (!done) refuse_library(what);
}

[[noreturn]] void refuse_bytes() {
  throw Error(ErrorKind::data, "the bytes were changed on the way, or are from somebody else",
              "look for what sits between the two hosts");
}

bool has_instructions_for_aes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes");
#elif defined(__aarch64__)
  return (::getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#else
  return false;
#endif
}

}  // namespace

struct RecordLayer::Parts {
  std::string key;
  std::string_view in;         // what the call under way takes from,
  std::string* out = nullptr;  // and appends to
  std::uint64_t records = 0, records_of_key = 0;
  bool established = false, has_failed = false;
  std::unique_ptr<SSL, FreeSession> session;

  ~Parts() { wipe(key); }

  static Parts& of(BIO* bio) { return *static_cast<Parts*>(lib_ssl().BIO_get_data(bio)); }
  static Parts& of(SSL* ssl) { return *static_cast<Parts*>(lib_ssl().SSL_get_ex_data(ssl, 0)); }

  static int read_network(BIO* bio, char* into, int size) {
    Parts& parts = of(bio);
    lib_ssl().BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    const std::size_t count = std::min(static_cast<std::size_t>(size), parts.in.size());
    if (count == 0) {
      lib_ssl().BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
      return -1;
    }
    std::memcpy(into, parts.in.data(), count);
    parts.in.remove_prefix(count);
    return static_cast<int>(count);
  }

  static int write_network(BIO* bio, const char* bytes, int size) {
    if (std::string* out = of(bio).out) out->append(bytes, static_cast<std::size_t>(size));
    return size;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  /// The session of which OpenSSL takes the pre-shared key; nullptr: it has none to give.
  SSL_SESSION* make_key_session() const {
    const LibSsl& lib = lib_ssl();
    SSL_SESSION* made = lib.SSL_SESSION_new();
    const auto* bytes = reinterpret_cast<const unsigned char*>(key.data());
    const SSL_CIPHER* cipher = lib.SSL_CIPHER_find(session.get(), kAes128GcmSha256);
    if (made && cipher && lib.SSL_SESSION_set1_master_key(made, bytes, key.size()) == 1 &&
        lib.SSL_SESSION_set_cipher(made, cipher) == 1 &&
        lib.SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) == 1)
      return made;
    lib.SSL_SESSION_free(made);
    return nullptr;
  }

  static int use_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                     SSL_SESSION** session) {
    *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
    *size = kIdentity.size();
    *session = of(ssl).make_key_session();
    return *session != nullptr;
  }

  static int find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
    const std::string_view named(reinterpret_cast<const char*>(identity), size);
    *session = named == kIdentity ? of(ssl).make_key_session() : nullptr;
    return 1;
  }

  /// Of all connections; kept as long as the library.
  static SSL_CTX* context() {
    static SSL_CTX* const made = [] {
      const LibSsl& lib = lib_ssl();
      SSL_CTX* context = lib.SSL_CTX_new(lib.TLS_method());
      checked(context != nullptr, "a context");
      checked(lib.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION,
                               static_cast<void*>(nullptr)) == 1,
              "TLS 1.3");
      const char* suites = has_instructions_for_aes() ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                                                      : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
      checked(lib.SSL_CTX_set_ciphersuites(context, suites) == 1, "AES-128-GCM and ChaCha20-Poly1305");
      checked(lib.SSL_CTX_set_num_tickets(context, 0) == 1, "to leave tickets out");
      lib.SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
      lib.SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF,
                       static_cast<void*>(nullptr));
      lib.SSL_CTX_ctrl(context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, static_cast<void*>(nullptr));
      lib.SSL_CTX_set_psk_use_session_callback(context, use_key);
      lib.SSL_CTX_set_psk_find_session_callback(context, find_key);
      return context;
    }();
    return made;
  }

  static const BIO_METHOD* network() {
    static const BIO_METHOD* const made = [] {
      const LibSsl& lib = lib_ssl();
      BIO_METHOD* method = lib.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "fleetrun");
      checked(method && lib.BIO_meth_set_read(method, read_network) == 1 &&
                  lib.BIO_meth_set_write(method, write_network) == 1 &&
                  lib.BIO_meth_set_ctrl(method, control) == 1,
              "bytes of our own");
      return method;
    }();
    return made;
  }
};

RecordLayer::RecordLayer(Side side, std::string_view key, std::uint64_t records_of_key)
    : parts_(std::make_unique<Parts>()) {
  const LibSsl& lib = lib_ssl();
  parts_->key = defends("records under the handshake's key") ? std::string(key) : std::string(32, 'k');
  parts_->records_of_key = records_of_key;
  parts_->session.reset(lib.SSL_new(Parts::context()));
  BIO* bio = lib.BIO_new(Parts::network());
  checked(parts_->session && bio, "a session");
  SSL* session = parts_->session.get();
  lib.BIO_set_data(bio, static_cast<void*>(parts_.get()));
  lib.BIO_set_init(bio, 1);
  lib.SSL_set_bio(session, bio, bio);
  checked(lib.SSL_set_ex_data(session, 0, static_cast<void*>(parts_.get())) == 1, "a session's data");
  if (side == Side::server) {
    lib.SSL_set_accept_state(session);
  } else {
    lib.SSL_set_connect_state(session);
    // There are no certificates: a server that shows one in place of the key is refused.
    lib.SSL_set_verify(session, SSL_VERIFY_PEER, static_cast<SSL_verify_cb>(nullptr));
  }
}
RecordLayer::RecordLayer(RecordLayer&&) noexcept = default;
RecordLayer& RecordLayer::operator=(RecordLayer&&) noexcept = default;
RecordLayer::~RecordLayer() = default;

bool RecordLayer::established() const noexcept {
  return parts_->established;
}

void RecordLayer::establish(std::string_view& bytes, std::string& out) {
  const LibSsl& lib = lib_ssl();
  SSL* session = parts_->session.get();
  parts_->in = bytes;
  parts_->out = &out;
  lib.ERR_clear_error();
  const int result = lib.SSL_do_handshake(session);
  parts_->out = nullptr;
  bytes = parts_->in;
  if (result != 1 && lib.SSL_get_error(session, result) != SSL_ERROR_WANT_READ) refuse_bytes();
  parts_->established = result == 1;
  if (parts_->established && lib.SSL_session_reused(session) != 1) refuse_bytes();  // without the key
}

bool RecordLayer::has_opened() const noexcept {
  return parts_->has_failed || lib_ssl().SSL_pending(parts_->session.get()) > 0;
}

bool RecordLayer::is_within_record() const noexcept {
  const SSL* session = parts_->session.get();
  constexpr std::string_view kAfterHead = "RB";  // as OpenSSL calls it
  return lib_ssl().SSL_has_pending(session) == 1 || lib_ssl().SSL_rstate_string(session) == kAfterHead;
}

std::size_t RecordLayer::open(std::string_view& bytes, std::span<std::byte> into) {
  const LibSsl& lib = lib_ssl();
  SSL* session = parts_->session.get();
  parts_->in = bytes;
  std::size_t taken = 0;
  while (taken < into.size() && !parts_->has_failed && (!parts_->in.empty() || has_opened())) {
    const auto room = static_cast<int>(std::min<std::size_t>(into.size() - taken, INT_MAX));
    lib.ERR_clear_error();
    const int count = lib.SSL_read(session, static_cast<void*>(into.data() + taken), room);
    if (count > 0)
      taken += static_cast<std::size_t>(count);
    else
      parts_->has_failed = lib.SSL_get_error(session, count) != SSL_ERROR_WANT_READ;
  }
  bytes = parts_->in;
  if (parts_->has_failed && taken == 0) refuse_bytes();  // what was opened before is handed out first
  return taken;
}

void RecordLayer::seal(std::span<const std::byte> plain, std::string& out) {
  const LibSsl& lib = lib_ssl();
  SSL* session = parts_->session.get();
  parts_->out = &out;
  while (!plain.empty()) {
    const std::span<const std::byte> part = plain.first(std::min(plain.size(), kRecord));
    lib.ERR_clear_error();
    if (++parts_->records % parts_->records_of_key == 0)
      checked(lib.SSL_key_update(session, SSL_KEY_UPDATE_NOT_REQUESTED) == 1, "another key");
    const auto size = static_cast<int>(part.size());
    checked(lib.SSL_write(session, static_cast<const void*>(part.data()), size) == size, "to seal");
    plain = plain.subspan(part.size());
  }
  parts_->out = nullptr;
}

}  // namespace fleetrun
