#include "runtime/secure/crypto.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <string.h>

#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/shared_library.h"

namespace fleetrun {
namespace {

/// libcrypto's functions, found once; nothing of it changes afterwards.
struct LibCrypto {
  SharedLibrary library{"libcrypto.so.3", "proving who one is to other hosts",
                        "install libssl3 of this system"};
  decltype(EVP_MAC_fetch)* mac_fetch = library.find<decltype(EVP_MAC_fetch)>("EVP_MAC_fetch");
  decltype(EVP_MAC_CTX_new)* context_new = library.find<decltype(EVP_MAC_CTX_new)>("EVP_MAC_CTX_new");
  decltype(EVP_MAC_CTX_free)* context_free = library.find<decltype(EVP_MAC_CTX_free)>("EVP_MAC_CTX_free");
  decltype(EVP_MAC_init)* init = library.find<decltype(EVP_MAC_init)>("EVP_MAC_init");
  decltype(EVP_MAC_update)* update = library.find<decltype(EVP_MAC_update)>("EVP_MAC_update");
  decltype(EVP_MAC_final)* final = library.find<decltype(EVP_MAC_final)>("EVP_MAC_final");
  EVP_MAC* hmac = mac_fetch(nullptr, "HMAC", nullptr);  // kept as long as the library
};

const LibCrypto& lib_crypto() {
  static const LibCrypto loaded;  // thrown again at the next call where it could not be loaded
  return loaded;
}

void checked(bool done, const char* what) {
  if (!done)
    throw Error(ErrorKind::host, std::string("libcrypto refused ") + what,
                "check the system's OpenSSL configuration (openssl.cnf): it has to allow HMAC with SHA-256");
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

struct KeyedHash::Context {
  EVP_MAC_CTX* raw = nullptr;

  Context() : raw(lib_crypto().hmac ? lib_crypto().context_new(lib_crypto().hmac) : nullptr) {
    checked(raw != nullptr, "HMAC");
  }
  ~Context() { lib_crypto().context_free(raw); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

KeyedHash::KeyedHash(std::string_view key) : context_(std::make_unique<Context>()) {
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      {OSSL_MAC_PARAM_DIGEST, OSSL_PARAM_UTF8_STRING, digest, sizeof digest - 1, OSSL_PARAM_UNMODIFIED},
      {nullptr, 0, nullptr, 0, 0}};
  // An empty key is a key for HMAC, but a null pointer means "as before" to EVP_MAC_init.
  const unsigned char* key_bytes = key.empty() ? bytes_of("") : bytes_of(key);
  checked(lib_crypto().init(context_->raw, key_bytes, key.size(), parameters) == 1, "a key");
}
KeyedHash::KeyedHash(KeyedHash&&) noexcept = default;
KeyedHash& KeyedHash::operator=(KeyedHash&&) noexcept = default;
KeyedHash::~KeyedHash() = default;

Digest KeyedHash::of(std::initializer_list<std::string_view> parts) {
  const LibCrypto& library = lib_crypto();
  checked(library.init(context_->raw, nullptr, 0, nullptr) == 1, "another message");
  for (const std::string_view part : parts)
    checked(part.empty() || library.update(context_->raw, bytes_of(part), part.size()) == 1, "a message");
  Digest digest = {};
  std::size_t size = 0;
  checked(library.final(context_->raw, digest.data(), &size, digest.size()) == 1 && size == digest.size(),
          "a digest");
  return digest;
}

std::string hmac_sha256(std::string_view key, std::string_view data) {
  Digest digest = KeyedHash(key).of({data});
  std::string result(reinterpret_cast<const char*>(digest.data()), digest.size());
  wipe(digest);
  return result;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;  // volatile: the loop may not end at the first byte that differs
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

void wipe(std::span<unsigned char> bytes) noexcept {
  ::explicit_bzero(bytes.data(), bytes.size());
}

void wipe(std::string& text) noexcept {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace fleetrun
