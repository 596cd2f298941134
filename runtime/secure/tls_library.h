// libssl's and libcrypto's functions, for runtime/secure/tls_session.cc alone:
// loaded when TLS is first asked for.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

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

  SharedLibrary crypto{"libcrypto.so.3", "TLS between hosts", "install libssl3 of this system"};
  SharedLibrary ssl{"libssl.so.3", "TLS between hosts", "install libssl3 of this system"};

 public:
  Function<decltype(::EVP_PKEY_new_raw_private_key)> EVP_PKEY_new_raw_private_key{
      crypto, "EVP_PKEY_new_raw_private_key"};
  Function<decltype(::EVP_PKEY_free)> EVP_PKEY_free{crypto, "EVP_PKEY_free"};
  Function<decltype(::X509_new)> X509_new{crypto, "X509_new"};
  Function<decltype(::X509_free)> X509_free{crypto, "X509_free"};
  Function<decltype(::X509_set_version)> X509_set_version{crypto, "X509_set_version"};
  Function<decltype(::X509_get_serialNumber)> X509_get_serialNumber{crypto, "X509_get_serialNumber"};
  Function<decltype(::ASN1_INTEGER_set)> ASN1_INTEGER_set{crypto, "ASN1_INTEGER_set"};
  Function<decltype(::X509_getm_notBefore)> X509_getm_notBefore{crypto, "X509_getm_notBefore"};
  Function<decltype(::X509_getm_notAfter)> X509_getm_notAfter{crypto, "X509_getm_notAfter"};
  Function<decltype(::ASN1_TIME_set_string)> ASN1_TIME_set_string{crypto, "ASN1_TIME_set_string"};
  Function<decltype(::X509_set_pubkey)> X509_set_pubkey{crypto, "X509_set_pubkey"};
  Function<decltype(::X509_get_subject_name)> X509_get_subject_name{crypto, "X509_get_subject_name"};
  Function<decltype(::X509_set_issuer_name)> X509_set_issuer_name{crypto, "X509_set_issuer_name"};
  Function<decltype(::X509_NAME_add_entry_by_txt)> X509_NAME_add_entry_by_txt{crypto,
                                                                              "X509_NAME_add_entry_by_txt"};
  Function<decltype(::X509V3_EXT_conf_nid)> X509V3_EXT_conf_nid{crypto, "X509V3_EXT_conf_nid"};
  Function<decltype(::X509_EXTENSION_free)> X509_EXTENSION_free{crypto, "X509_EXTENSION_free"};
  Function<decltype(::X509_add_ext)> X509_add_ext{crypto, "X509_add_ext"};
  Function<decltype(::X509_sign)> X509_sign{crypto, "X509_sign"};
  Function<decltype(::X509_STORE_add_cert)> X509_STORE_add_cert{crypto, "X509_STORE_add_cert"};
  Function<decltype(::X509_STORE_set_flags)> X509_STORE_set_flags{crypto, "X509_STORE_set_flags"};
  Function<decltype(::BIO_new)> BIO_new{crypto, "BIO_new"};
  Function<decltype(::BIO_s_mem)> BIO_s_mem{crypto, "BIO_s_mem"};
  Function<decltype(::BIO_free)> BIO_free{crypto, "BIO_free"};
  Function<decltype(::BIO_read)> BIO_read{crypto, "BIO_read"};
  Function<decltype(::BIO_write)> BIO_write{crypto, "BIO_write"};
  Function<decltype(::BIO_ctrl_pending)> BIO_ctrl_pending{crypto, "BIO_ctrl_pending"};
  Function<decltype(::ERR_peek_error)> ERR_peek_error{crypto, "ERR_peek_error"};
  Function<decltype(::ERR_clear_error)> ERR_clear_error{crypto, "ERR_clear_error"};
  Function<decltype(::ERR_reason_error_string)> ERR_reason_error_string{crypto, "ERR_reason_error_string"};
  Function<decltype(::TLS_method)> TLS_method{ssl, "TLS_method"};
  Function<decltype(::SSL_CTX_new)> SSL_CTX_new{ssl, "SSL_CTX_new"};
  Function<decltype(::SSL_CTX_free)> SSL_CTX_free{ssl, "SSL_CTX_free"};
  Function<decltype(::SSL_CTX_ctrl)> SSL_CTX_ctrl{ssl, "SSL_CTX_ctrl"};
  Function<decltype(::SSL_CTX_use_certificate)> SSL_CTX_use_certificate{ssl, "SSL_CTX_use_certificate"};
  Function<decltype(::SSL_CTX_use_PrivateKey)> SSL_CTX_use_PrivateKey{ssl, "SSL_CTX_use_PrivateKey"};
  Function<decltype(::SSL_CTX_get_cert_store)> SSL_CTX_get_cert_store{ssl, "SSL_CTX_get_cert_store"};
  Function<decltype(::SSL_CTX_set_verify)> SSL_CTX_set_verify{ssl, "SSL_CTX_set_verify"};
  Function<decltype(::SSL_CTX_set_num_tickets)> SSL_CTX_set_num_tickets{ssl, "SSL_CTX_set_num_tickets"};
  Function<decltype(::SSL_new)> SSL_new{ssl, "SSL_new"};
  Function<decltype(::SSL_free)> SSL_free{ssl, "SSL_free"};
  Function<decltype(::SSL_set_bio)> SSL_set_bio{ssl, "SSL_set_bio"};
  Function<decltype(::SSL_set_accept_state)> SSL_set_accept_state{ssl, "SSL_set_accept_state"};
  Function<decltype(::SSL_set_connect_state)> SSL_set_connect_state{ssl, "SSL_set_connect_state"};
  Function<decltype(::SSL_do_handshake)> SSL_do_handshake{ssl, "SSL_do_handshake"};
  Function<decltype(::SSL_read)> SSL_read{ssl, "SSL_read"};
  Function<decltype(::SSL_write)> SSL_write{ssl, "SSL_write"};
  Function<decltype(::SSL_get_error)> SSL_get_error{ssl, "SSL_get_error"};
  Function<decltype(::SSL_get_verify_result)> SSL_get_verify_result{ssl, "SSL_get_verify_result"};
  Function<decltype(::SSL_export_keying_material)> SSL_export_keying_material{ssl,
                                                                              "SSL_export_keying_material"};
};

/// Throws: Error(host) where they are missing.
inline const LibSsl& lib_ssl() {
  static const LibSsl loaded;
  return loaded;
}

}  // namespace fleetrun
