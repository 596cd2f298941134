// libssl's and libcrypto's functions, for runtime/secure/record_layer.cc alone:
// loaded when the first connection between hosts is made.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "runtime/base/shared_library.h"

namespace fleetrun {

/// Their own names: a call reads as in OpenSSL's manual. Found once; nothing of it changes afterwards.
class LibSsl {
  template <class Type>
  class Function {
   public:
    Function(const SharedLibrary& library, const char* name) : pointer_(library.find<Type>(name)) {}
    template <class... Arguments>
    auto operator()(Arguments... arguments) const {
      return pointer_(arguments...);
    }
    Type* pointer() const noexcept { return pointer_; }

   private:
    Type* pointer_;
  };

  SharedLibrary crypto{"libcrypto.so.3", "sealing what crosses hosts", "install libssl3 of this system"};
  SharedLibrary ssl{"libssl.so.3", "sealing what crosses hosts", "install libssl3 of this system"};

 public:
#define FLEETRUN_FUNCTION(library, name) \
  Function<decltype(::name)> name {      \
    library, #name                       \
  }
  FLEETRUN_FUNCTION(crypto, BIO_meth_new);
  FLEETRUN_FUNCTION(crypto, BIO_meth_set_read);
  FLEETRUN_FUNCTION(crypto, BIO_meth_set_write);
  FLEETRUN_FUNCTION(crypto, BIO_meth_set_ctrl);
  FLEETRUN_FUNCTION(crypto, BIO_new);
  FLEETRUN_FUNCTION(crypto, BIO_set_data);
  FLEETRUN_FUNCTION(crypto, BIO_get_data);
  FLEETRUN_FUNCTION(crypto, BIO_set_init);
  FLEETRUN_FUNCTION(crypto, BIO_set_flags);
  FLEETRUN_FUNCTION(crypto, BIO_clear_flags);
  FLEETRUN_FUNCTION(crypto, ERR_peek_error);
  FLEETRUN_FUNCTION(crypto, ERR_clear_error);
  FLEETRUN_FUNCTION(crypto, ERR_reason_error_string);
  FLEETRUN_FUNCTION(ssl, TLS_method);
  FLEETRUN_FUNCTION(ssl, SSL_CTX_new);
  FLEETRUN_FUNCTION(ssl, SSL_CTX_ctrl);
  FLEETRUN_FUNCTION(ssl, SSL_CTX_clear_options);
  FLEETRUN_FUNCTION(ssl, SSL_CTX_set_ciphersuites);
  FLEETRUN_FUNCTION(ssl, SSL_CTX_set_num_tickets);
  FLEETRUN_FUNCTION(ssl, SSL_CTX_set_psk_find_session_callback);
  FLEETRUN_FUNCTION(ssl, SSL_CTX_set_psk_use_session_callback);
  FLEETRUN_FUNCTION(ssl, SSL_new);
  FLEETRUN_FUNCTION(ssl, SSL_free);
  FLEETRUN_FUNCTION(ssl, SSL_set_ex_data);
  FLEETRUN_FUNCTION(ssl, SSL_get_ex_data);
  FLEETRUN_FUNCTION(ssl, SSL_set_bio);
  FLEETRUN_FUNCTION(ssl, SSL_set_verify);
  FLEETRUN_FUNCTION(ssl, SSL_set_accept_state);
  FLEETRUN_FUNCTION(ssl, SSL_set_connect_state);
  FLEETRUN_FUNCTION(ssl, SSL_do_handshake);
  FLEETRUN_FUNCTION(ssl, SSL_read);
  FLEETRUN_FUNCTION(ssl, SSL_write);
  FLEETRUN_FUNCTION(ssl, SSL_key_update);
  FLEETRUN_FUNCTION(ssl, SSL_pending);
  FLEETRUN_FUNCTION(ssl, SSL_has_pending);
  FLEETRUN_FUNCTION(ssl, SSL_rstate_string);
  FLEETRUN_FUNCTION(ssl, SSL_get_error);
  FLEETRUN_FUNCTION(ssl, SSL_session_reused);
  FLEETRUN_FUNCTION(ssl, SSL_SESSION_new);
  FLEETRUN_FUNCTION(ssl, SSL_SESSION_free);
  FLEETRUN_FUNCTION(ssl, SSL_SESSION_set1_master_key);
  FLEETRUN_FUNCTION(ssl, SSL_SESSION_set_cipher);
  FLEETRUN_FUNCTION(ssl, SSL_SESSION_set_protocol_version);
  FLEETRUN_FUNCTION(ssl, SSL_CIPHER_find);
#undef FLEETRUN_FUNCTION
};

/// Throws: Error(host) where they are missing.
inline const LibSsl& lib_ssl() {
  static const LibSsl loaded;
  return loaded;
}

}  // namespace fleetrun
