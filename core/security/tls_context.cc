#include <openssl/err.h>
#include <openssl/ssl.h>

#include "core/security/tls.h"

namespace tutti::security {
namespace {

std::string last_reason() {
  const unsigned long error = ERR_peek_last_error();
  const char* const text = error == 0 ? nullptr : ERR_reason_error_string(error);
  ERR_clear_error();
  return text == nullptr ? "unknown reason" : text;
}

Status bad_file(const char* variable, const std::string& path) {
  return Status(Code::invalid_argument, std::string(variable) + ": " + path + ": " + last_reason());
}

Status load_files(SSL_CTX* context, const TlsContext::Options& options) {
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1) {
    return bad_file("TUTTI_TLS_CERT", options.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return bad_file("TUTTI_TLS_KEY", options.key);
  }
  if (SSL_CTX_load_verify_locations(context, options.authority.c_str(), nullptr) != 1) {
    return bad_file("TUTTI_TLS_CA", options.authority);
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

// Where a key proves everything, no certificate proves anything, whoever has signed it.
int refuse_certificate(X509_STORE_CTX* chain, void*) {
  X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

}  // namespace

TlsContext::TlsContext(const Options& options) : options_(options) {}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Result<std::unique_ptr<const TlsContext>> TlsContext::create(const Options& options) {
  // Our threads may still run when the process exits.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  std::unique_ptr<TlsContext> made(new TlsContext(options));
  made->context_ = SSL_CTX_new(TLS_method());
  SSL_CTX* const context = made->context_;
  if (context == nullptr) return Status(Code::internal, "TLS: " + last_reason());
  // The hash of a key that both derive must be that of the cipher, hence SHA-256 only.
  const bool set =
      SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
      SSL_CTX_set_num_tickets(context, 0) == 1;
  if (!set) return Status(Code::internal, "TLS: " + last_reason());
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  if (made->has_certificate()) {
    if (const Status loaded = load_files(context, options); !loaded.ok()) return loaded;
  } else {
    SSL_CTX_set_cert_verify_callback(context, refuse_certificate, nullptr);
  }
  return std::unique_ptr<const TlsContext>(std::move(made));
}

}  // namespace tutti::security
