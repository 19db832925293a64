#include <atomic>
#include <cerrno>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tutti/credentials.h>
#include <tutti/log.h>

#include "core/descriptor.h"
#include "core/error_text.h"
#include "core/security/keys.h"

namespace tutti::security {
namespace {

constexpr std::size_t longest_token = 4096;
constexpr std::size_t guessable_token = 16;  // in bytes: a shorter token may be guessed

std::atomic_flag said_short, said_token_open, said_key_open;

void warn_once(std::atomic_flag& said, const std::string& text) {
  if (!said.test_and_set()) log::warn(text);
}

// Warns, once, that other users can access the file. `allows` is the part of the warning that says what a
// user who reads the file can do.
void warn_if_open(std::atomic_flag& said, const char* variable, const std::string& path, mode_t mode,
                  const char* allows) {
  if ((mode & (S_IRWXG | S_IRWXO)) == 0) return;
  warn_once(said, std::string(variable) + ": " + path +
                      " is open to users other than its owner (chmod 600 closes it): any user who reads it " +
                      allows);
}

Status bad_file(const std::string& path, const std::string& why) {
  return Status(Code::invalid_argument, "TUTTI_TOKEN_FILE: " + path + ": " + why);
}

// Returns the file's first line without its newline, so that a file made with `echo` works too.
Result<Secret> read_token(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return bad_file(path, error_text(errno));
  struct stat info = {};
  const bool regular = fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  Secret text;
  const int error = regular ? text.read_from(file.get(), longest_token + 1) : 0;
  file.reset();
  if (!regular) return bad_file(path, "it is not a regular file");
  if (error != 0) return bad_file(path, "it cannot be read");
  const std::string_view all = text.reveal();
  Secret token(all.substr(0, all.find_first_of("\r\n")));
  if (token.reveal().find_first_not_of(" \t\v\f") == std::string_view::npos) {
    return bad_file(path, "its first line is empty");
  }
  if (all.size() > longest_token)
    return bad_file(path, "it is longer than " + std::to_string(longest_token) + " bytes");
  warn_if_open(said_token_open, "TUTTI_TOKEN_FILE", path, info.st_mode, "can join the job");
  return token;
}

Result<std::unique_ptr<const TlsContext>> make_tls(const Settings& settings) {
  const bool any = !settings.certificate.empty() || !settings.key.empty() || !settings.authority.empty();
  const bool all = !settings.certificate.empty() && !settings.key.empty() && !settings.authority.empty();
  if (any && !all) {
    return Status(Code::invalid_argument,
                  "TUTTI_TLS_CERT, TUTTI_TLS_KEY and TUTTI_TLS_CA belong together; one of them is missing");
  }
  if (!any && settings.token.empty()) {
    return Status(
        Code::invalid_argument,
        "TUTTI_TLS needs a token or certificates: TUTTI_TOKEN, TUTTI_TOKEN_FILE or the certificate files "
        "TUTTI_TLS_CERT, TUTTI_TLS_KEY and TUTTI_TLS_CA");
  }
  auto made =
      TlsContext::create({settings.certificate, settings.key, settings.authority, settings.rekey_bytes});
  struct stat key = {};
  if (made.ok() && any && stat(settings.key.c_str(), &key) == 0) {
    warn_if_open(said_key_open, "TUTTI_TLS_KEY", settings.key, key.st_mode, "can pass for this process");
  }
  return made;
}

}  // namespace

Result<Settings> settings_from(const Config& config) {
  Settings settings;
  settings.job = config.job_id;
  settings.token = config.token;
  settings.tls = config.tls;
  settings.certificate = config.tls_cert;
  settings.key = config.tls_key;
  settings.authority = config.tls_ca;
  if (!config.token_file.empty() && !config.token.empty()) {
    return Status(Code::invalid_argument, "TUTTI_TOKEN and TUTTI_TOKEN_FILE are both set; unset one of them");
  }
  if (!config.token_file.empty()) {
    Result<Secret> token = read_token(config.token_file);
    if (!token.ok()) return token.status();
    settings.token = *std::move(token);
  }
  if (!settings.token.empty() && settings.token.reveal().size() < guessable_token) {
    warn_once(said_short, "the token has fewer than " + std::to_string(guessable_token) +
                              " bytes and may be guessed; `openssl rand -hex 32` makes a good one");
  }
  return settings;
}

Result<SharedCredentials> Credentials::create(const Settings& settings) {
  if (settings.token.empty() && !settings.tls) return SharedCredentials();
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);  // our threads may still run when the process exits
  std::unique_ptr<const TlsContext> tls;
  if (settings.tls) {
    Result<std::unique_ptr<const TlsContext>> made = make_tls(settings);
    if (!made.ok()) return made.status();
    tls = *std::move(made);
  }
  return std::make_shared<const Credentials>(
      std::make_unique<const Keys>(settings.token.reveal(), settings.job, std::move(tls)));
}

Credentials::Credentials(std::unique_ptr<const Keys> keys) : keys_(std::move(keys)) {}

Credentials::~Credentials() = default;

}  // namespace tutti::security
