#pragma once

#include <memory>

#include "core/security/digest.h"
#include "core/security/messages.h"
#include "core/security/tls.h"

namespace tutti::security {

// `Keys` holds the keys that are derived from Settings. `Credentials` owns it, and only `Guard` uses it.
class Keys {
 public:
  // `tls` is null if connections are not encrypted.
  Keys(std::string_view token, std::string_view job, std::unique_ptr<const TlsContext> tls)
      : has_token_(!token.empty()),
        tls_(std::move(tls)),
        master_(hmac(bytes_of("tutti token 1"), {bytes_of(token)})),
        proof_(hmac(master_, {bytes_of("proof")})),
        job_(hmac(bytes_of("tutti job 1"), {bytes_of(job)})) {}
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  ~Keys() {
    wipe(master_);
    wipe(proof_);
  }

  // Returns the key with which the guards of both sides compute their proofs (see messages.h).
  const Digest& proof() const { return proof_; }
  const Digest& job() const { return job_; }
  // Derives the key of one connection, which the caller must wipe after use.
  Digest connection_key(std::initializer_list<std::span<const std::byte>> parts) const {
    Digest all = hmac(master_, {bytes_of("connection")});
    const Digest key = hmac(all, parts);
    wipe(all);
    return key;
  }
  bool has_token() const { return has_token_; }
  const TlsContext* tls() const { return tls_.get(); }
  Mode mode() const {
    if (tls_ == nullptr) return Mode::challenge;
    return tls_->has_certificate() ? Mode::tls_files : Mode::tls_token;
  }

 private:
  const bool has_token_;
  const std::unique_ptr<const TlsContext> tls_;
  Digest master_;
  Digest proof_;
  Digest job_;
};

}  // namespace tutti::security
