#pragma once

#include <tutti/core/security/digest.h>

namespace tutti::security {

// What is derived from Settings, for Guard alone.
class Keys {
 public:
  Keys(std::string_view token, std::string_view job)
      : master_(hmac(bytes_of("tutti token 1"), {bytes_of(token)})),
        proof_(hmac(master_, {bytes_of("proof")})),
        job_(hmac(bytes_of("tutti job 1"), {bytes_of(job)})) {}
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  ~Keys() {
    wipe(master_);
    wipe(proof_);
  }

  // The key of the challenge's proofs.
  const Digest& proof() const { return proof_; }
  const Digest& job() const { return job_; }

 private:
  Digest master_;
  Digest proof_;
  Digest job_;
};

}  // namespace tutti::security
