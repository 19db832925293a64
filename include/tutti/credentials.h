#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tutti/config.h>
#include <tutti/export.h>
#include <tutti/secret.h>
#include <tutti/status.h>

namespace tutti::security {

class Keys;

// `Settings` are what a process uses to prove that it belongs to the job.
struct Settings {
  Secret token;
  std::string job;  // its name: proofs for one job are not valid in another with the same token
  bool tls = false;
  std::string certificate, key, authority;             // PEM files for TLS: all, or none to use the token
  std::uint64_t rekey_bytes = std::uint64_t{1} << 36;  // how much one TLS key protects
};

// Makes the settings from TUTTI_TOKEN, or from the file TUTTI_TOKEN_FILE, and from TUTTI_TLS*; the job is
// TUTTI_JOB_ID. `invalid_argument` says what is wrong with them, and never shows the token. Once in the life
// of a process the log warns of a token that is short, and of a token file that others can read.
TUTTI_API Result<Settings> settings_from(const Config& config);

// `Credentials` are made once, shared by all connections of a process, and never changed.
class TUTTI_API Credentials {
 public:
  // Returns null if there is nothing to prove: then every connection is accepted. `invalid_argument` means
  // TLS without a token and without certificates, or files that are not certificates. Once in the life of a
  // process the log warns of a key file that others can read.
  static Result<std::shared_ptr<const Credentials>> create(const Settings& settings);
  explicit Credentials(std::unique_ptr<const Keys> keys);
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;
  ~Credentials();

  const Keys& keys() const { return *keys_; }

 private:
  std::unique_ptr<const Keys> keys_;
};

using SharedCredentials = std::shared_ptr<const Credentials>;

}  // namespace tutti::security
