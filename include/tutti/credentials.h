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

// `Settings` are the secrets and files by which a process proves that it belongs to the job.
struct Settings {
  Secret token;
  std::string job;  // the job's name; a proof for one job is not valid for another job with the same token
  bool tls = false;
  std::string certificate, key, authority;  // PEM files for TLS: all or none; without them TLS uses the token
  std::uint64_t rekey_bytes = std::uint64_t{1} << 36;  // a TLS key is renewed after this many bytes
};

// Makes settings from these variables: TUTTI_TOKEN or TUTTI_TOKEN_FILE, TUTTI_TLS*, and TUTTI_JOB_ID.
// `invalid_argument` says what is wrong with a variable, and never shows the token. Logs a warning, once per
// process, about a short token and about a token file that other users can read. Any thread may call it.
TUTTI_API Result<Settings> settings_from(const Config& config);

// `Credentials` are the keys made from `Settings`. They are made once and never changed, so all connections
// and threads of a process share them.
class TUTTI_API Credentials {
 public:
  // Returns null if the settings contain neither a token nor TLS; then every connection is accepted.
  // `invalid_argument` means that TLS has neither a token nor certificates, or that a file is not valid PEM.
  // Logs a warning, once per process, about a key file that other users can read.
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
