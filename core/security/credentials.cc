#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tutti/core/security/credentials.h>
#include <tutti/core/security/keys.h>

namespace tutti::security {
namespace {

constexpr std::size_t longest_token = 4096;

Status bad_file(const std::string& path, const std::string& why) {
  return Status(Code::invalid_argument, "TUTTI_TOKEN_FILE: " + path + ": " + why);
}

// Its first line, so that a file made with `echo` serves as well.
Result<Secret> read_token(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return bad_file(path, std::strerror(errno));
  struct stat info = {};
  std::array<char, longest_token + 1> text;
  std::size_t size = 0;
  ssize_t got = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? 1 : -1;
  const bool regular = got > 0;
  while (got > 0 && size < text.size()) {
    got = read(fd, text.data() + size, text.size() - size);
    if (got > 0) size += static_cast<std::size_t>(got);
    if (got < 0 && errno == EINTR) got = 1;
  }
  close(fd);
  const std::string_view all(text.data(), size);
  Secret token(all.substr(0, all.find_first_of("\r\n")));
  wipe(std::as_writable_bytes(std::span(text)));
  if (!regular) return bad_file(path, "it is not a regular file");
  if (got < 0) return bad_file(path, "it cannot be read");
  if (token.empty()) return bad_file(path, "its first line is empty");
  if (size > longest_token)
    return bad_file(path, "it is longer than " + std::to_string(longest_token) + " bytes");
  return token;
}

}  // namespace

Result<Settings> settings_from(const Config& config) {
  Settings settings;
  settings.job = config.job_id;
  settings.token = config.token;
  if (config.token_file.empty()) return settings;
  if (!config.token.empty()) {
    return Status(Code::invalid_argument,
                  "TUTTI_TOKEN and TUTTI_TOKEN_FILE are both set; one of them must go");
  }
  Result<Secret> token = read_token(config.token_file);
  if (!token.ok()) return token.status();
  settings.token = *std::move(token);
  return settings;
}

Result<SharedCredentials> Credentials::create(const Settings& settings) {
  if (settings.token.empty()) return SharedCredentials();
  return std::make_shared<const Credentials>(
      std::make_unique<const Keys>(settings.token.reveal(), settings.job));
}

Credentials::Credentials(std::unique_ptr<const Keys> keys) : keys_(std::move(keys)) {}

Credentials::~Credentials() = default;

std::string describe(const SharedCredentials& credentials) {
  return credentials == nullptr ? "open" : "token";
}

}  // namespace tutti::security
