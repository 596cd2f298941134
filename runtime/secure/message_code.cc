#include "runtime/secure/message_code.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/shared_library.h"
#include "runtime/secure/crypto.h"

namespace fleetrun {
namespace {

struct LibCrypto {
  SharedLibrary library{"libcrypto.so.3", "proving what one sends to other processes",
                        "install libssl3 of this system"};
  decltype(EVP_aes_256_gcm)* aes_256_gcm = library.find<decltype(EVP_aes_256_gcm)>("EVP_aes_256_gcm");
  decltype(EVP_CIPHER_CTX_new)* context_new =
      library.find<decltype(EVP_CIPHER_CTX_new)>("EVP_CIPHER_CTX_new");
  decltype(EVP_CIPHER_CTX_free)* context_free =
      library.find<decltype(EVP_CIPHER_CTX_free)>("EVP_CIPHER_CTX_free");
  decltype(EVP_CIPHER_CTX_ctrl)* control = library.find<decltype(EVP_CIPHER_CTX_ctrl)>("EVP_CIPHER_CTX_ctrl");
  decltype(EVP_EncryptInit_ex)* init = library.find<decltype(EVP_EncryptInit_ex)>("EVP_EncryptInit_ex");
  decltype(EVP_EncryptUpdate)* update = library.find<decltype(EVP_EncryptUpdate)>("EVP_EncryptUpdate");
  decltype(EVP_EncryptFinal_ex)* final = library.find<decltype(EVP_EncryptFinal_ex)>("EVP_EncryptFinal_ex");
};

const LibCrypto& lib_crypto() {
  static const LibCrypto loaded;
  return loaded;
}

void checked(bool done, const char* what) {
  if (!done)
    throw Error(ErrorKind::host, std::string("libcrypto refused ") + what,
                "check the system's OpenSSL configuration (openssl.cnf): it has to allow AES-256-GCM");
}

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const noexcept { lib_crypto().context_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

constexpr std::size_t kLongestStep = std::size_t{1} << 30;  // lengths are ints there

}  // namespace

// A context is used by one thread at a time; as many are kept as were used at once.
struct MessageCoder::Contexts {
  std::array<unsigned char, kKeyBytes> key;
  std::mutex mutex;
  std::vector<Context> spare;

  ~Contexts() { wipe(key); }

  Context take() {
    {
      const std::lock_guard lock(mutex);
      if (!spare.empty()) {
        Context context = std::move(spare.back());
        spare.pop_back();
        return context;
      }
    }
    Context context(lib_crypto().context_new());
    checked(context && lib_crypto().init(context.get(), lib_crypto().aes_256_gcm(), nullptr, key.data(),
                                         nullptr) == 1,
            "AES-256-GCM");
    return context;
  }
  void give_back(Context context) {
    const std::lock_guard lock(mutex);
    spare.push_back(std::move(context));
  }
};

MessageCoder::MessageCoder(std::string_view key) : contexts_(std::make_unique<Contexts>()) {
  if (key.size() != kKeyBytes)
    throw Error(ErrorKind::config, "a key of " + std::to_string(key.size()) + " bytes for message codes; " +
                                       std::to_string(kKeyBytes) + " are needed");
  std::memcpy(contexts_->key.data(), key.data(), key.size());
  contexts_->give_back(contexts_->take());
}

MessageCoder::~MessageCoder() = default;

MessageCoder::Code MessageCoder::of(std::uint32_t purpose, std::uint64_t number,
                                    std::span<const std::span<const std::byte>> parts) const {
  const LibCrypto& library = lib_crypto();
  std::array<unsigned char, sizeof purpose + sizeof number> nonce;
  std::memcpy(nonce.data(), &purpose, sizeof purpose);
  std::memcpy(nonce.data() + sizeof purpose, &number, sizeof number);
  Context context = contexts_->take();
  checked(library.init(context.get(), nullptr, nullptr, nullptr, nonce.data()) == 1, "another message");
  int ignored = 0;
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const auto step = part.first(std::min(part.size(), kLongestStep));
      checked(library.update(context.get(), nullptr, &ignored,
                             reinterpret_cast<const unsigned char*>(step.data()),
                             static_cast<int>(step.size())) == 1,
              "a message");
      part = part.subspan(step.size());
    }
  }
  Code code;
  unsigned char nothing[16];
  checked(library.final(context.get(), nothing, &ignored) == 1 &&
              library.control(context.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(code.size()),
                              code.data()) == 1,
          "a code");
  contexts_->give_back(std::move(context));
  return code;
}

bool MessageCoder::is_of(std::string_view code, std::uint32_t purpose, std::uint64_t number,
                         std::span<const std::span<const std::byte>> parts) const {
  const Code wanted = of(purpose, number, parts);
  return equal_in_constant_time(code, {reinterpret_cast<const char*>(wanted.data()), wanted.size()});
}

}  // namespace fleetrun
