#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tutti/core/config_values.h>
#include <tutti/core/error_text.h>
#include <tutti/rendezvous/address.h>
#include <tutti/rendezvous/file/session_file.h>
#include <tutti/rendezvous/random.h>

namespace tutti::file {
namespace {

constexpr std::string_view heading = "tutti-session 1";
constexpr std::size_t max_endpoints = 16;
constexpr std::size_t nonce_digits = 32;
constexpr std::size_t token_digits = 64;

Status malformed(const std::string& what) { return Status(Code::protocol_error, what); }

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// The lines of the text one after the other.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // The value if the next line is "name value"; then moves on.
  std::optional<std::string_view> value_of(std::string_view name) {
    const std::size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    if (end == rest_.npos || !line.starts_with(name) || line.size() <= name.size() + 1 ||
        line[name.size()] != ' ') {
      return std::nullopt;
    }
    rest_ = rest_.substr(end + 1);
    return line.substr(name.size() + 1);
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == text.npos) return std::nullopt;
  const std::optional<std::int64_t> port = parse_integer(text.substr(space + 1));
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  Endpoint endpoint{std::string(text.substr(0, space)), static_cast<std::uint16_t>(*port)};
  if (endpoint.address.empty() || endpoint.address.size() > 255) return std::nullopt;
  return endpoint;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status cannot_write(const std::string& path, int error) {
  const std::string where = "cannot write the session file " + path + ": ";
  if (error == EISDIR || error == ENOTEMPTY || error == EEXIST) {
    return Status(Code::invalid_argument, where + "it is a folder");
  }
  if (error == ENOENT) {
    return Status(Code::invalid_argument, where + "the folder " + folder_of(path) + " does not exist");
  }
  if (error == EACCES || error == EPERM || error == EROFS) {
    return Status(Code::invalid_argument,
                  where + "the folder " + folder_of(path) + " is not writable (" + error_text(error) + ")");
  }
  return Status(Code::invalid_argument, where + error_text(error));
}

// 0 or an errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

Status replace_file(const std::string& path, std::string_view text) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return cannot_write(path, EISDIR);
  // O_EXCL on a name nobody can guess: ours alone, on every file system.
  const std::string temporary = path + ".tmp-" + random_hex(8);
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return cannot_write(path, errno);
  int error = write_all(fd, text);
  if (close(fd) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  unlink(temporary.c_str());
  return cannot_write(path, error);
}

Status not_there(const std::string& path, int error) {
  if (error == ENOTDIR) return Status(Code::invalid_argument, folder_of(path) + " is not a folder");
  struct stat info = {};
  if (error == ENOENT && stat(folder_of(path).c_str(), &info) != 0 && errno == ENOENT) {
    return Status(Code::invalid_argument,
                  "the folder " + folder_of(path) + " of the session file " + path + " does not exist");
  }
  if (error == ENOENT) return Status(Code::unreachable, "there is no session file " + path + " yet");
  return Status(Code::unreachable, "cannot read the session file " + path + ": " + error_text(error));
}

// Network file systems remember for a while that a file does not exist; opening its folder makes them ask
// again.
void refresh_folder(const std::string& path) {
  if (DIR* folder = opendir(folder_of(path).c_str())) closedir(folder);
}

// At most one byte more than a session may have.
Result<std::string> read_bounded(const std::string& path) {
  refresh_folder(path);
  // O_NONBLOCK: a FIFO at that path must not stop us.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return not_there(path, errno);
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    if (S_ISDIR(info.st_mode))
      return Status(Code::invalid_argument, "the session file " + path + " is a folder");
    return Status(Code::unreachable, "the session file " + path + " is not a regular file");
  }
  std::string text(max_session_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got == 0) break;
    if (got > 0) size += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR) {
      const int error = errno;
      close(fd);
      return not_there(path, error);
    }
  }
  close(fd);
  text.resize(size);
  return text;
}

}  // namespace

std::string format_session(const SessionText& session) {
  std::string text(heading);
  text += "\nnonce " + session.nonce + "\ntoken " + session.token + "\nboot " + session.boot_id + "\n";
  for (const Endpoint& endpoint : session.endpoints) {
    text += "endpoint " + endpoint.address + " " + std::to_string(endpoint.port) + "\n";
  }
  return text + "end\n";
}

Result<SessionText> parse_session(std::string_view text) {
  if (text.size() > max_session_bytes) return malformed("it is too long");
  if (text.empty()) return malformed("it is empty");
  if (!text.starts_with("tutti-session ")) return malformed("it is not a tutti session");
  Lines lines(text.substr(std::min(text.size(), heading.size() + 1)));
  if (!text.starts_with(std::string(heading) + "\n")) return malformed("it is of another version");
  const auto nonce = lines.value_of("nonce");
  if (!nonce || !is_hex(*nonce, nonce_digits)) return malformed("its nonce is missing or damaged");
  const auto token = lines.value_of("token");
  if (!token || !is_hex(*token, token_digits)) return malformed("its token is missing or damaged");
  const auto boot = lines.value_of("boot");
  if (!boot) return malformed("its boot id is missing");
  SessionText session{std::string(*nonce), std::string(*token), std::string(*boot), {}};
  while (const auto value = lines.value_of("endpoint")) {
    const std::optional<Endpoint> endpoint = parse_endpoint(*value);
    if (!endpoint || session.endpoints.size() == max_endpoints) return malformed("an endpoint is damaged");
    session.endpoints.push_back(*endpoint);
  }
  if (session.endpoints.empty()) return malformed("it has no endpoint");
  if (lines.rest() != "end\n") return malformed("its end is missing");
  return session;
}

Result<SessionText> read_session(const std::string& path) {
  Result<std::string> text = read_bounded(path);
  if (!text.ok()) return text.status();
  Result<SessionText> session = parse_session(*text);
  if (session.ok()) return session;
  return Status(Code::unreachable,
                "the session file " + path + " holds something else: " + session.status().message());
}

PublishedSession::PublishedSession(std::string path, SessionText session)
    : path_(std::move(path)), session_(std::move(session)), owner_(getpid()) {}

PublishedSession::PublishedSession(PublishedSession&& other) noexcept
    : path_(std::exchange(other.path_, {})), session_(std::move(other.session_)), owner_(other.owner_) {}

Result<PublishedSession> PublishedSession::publish(const std::string& path, const SessionText& session) {
  if (Status status = replace_file(path, format_session(session)); !status.ok()) return status;
  return PublishedSession(path, session);
}

void PublishedSession::restore_if_missing() const {
  struct stat info = {};
  if (lstat(path_.c_str(), &info) == 0 || errno != ENOENT) return;
  // A failure shows as ranks that do not arrive; the next call tries again.
  static_cast<void>(replace_file(path_, format_session(session_)).ok());
}

PublishedSession::~PublishedSession() {
  if (path_.empty() || getpid() != owner_) return;
  const Result<SessionText> now = read_session(path_);
  if (now.ok() && now->nonce == session_.nonce) unlink(path_.c_str());
}

}  // namespace tutti::file
