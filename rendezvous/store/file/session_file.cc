#include "rendezvous/store/file/session_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tutti/address.h>
#include <tutti/config_values.h>

#include "core/descriptor.h"
#include "core/error_text.h"
#include "core/new_file.h"
#include "core/random.h"

namespace tutti::file {
namespace {

constexpr std::string_view magic = "tutti-session ";
constexpr std::string_view heading = "tutti-session 1";
constexpr std::size_t max_endpoints = 16;
constexpr std::size_t nonce_digits = 32;
constexpr std::size_t token_digits = 64;

Status malformed(const std::string& what) { return Status(Code::protocol_error, what); }

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// `Lines` reads the lines of a text one after another.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // Returns the value if the next line is "name value", and then moves on.
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
  if (error == ENOENT) {
    return Status(Code::invalid_argument, where + "the folder " + folder_of(path) + " does not exist");
  }
  if (error == EACCES || error == EPERM || error == EROFS) {
    return Status(Code::invalid_argument,
                  where + "the folder " + folder_of(path) + " is not writable (" + error_text(error) + ")");
  }
  return Status(Code::invalid_argument, where + error_text(error));
}

std::string user_name(uid_t uid) {
  std::array<char, 4096> space;
  passwd entry = {};
  passwd* found = nullptr;
  const bool known = getpwuid_r(uid, &entry, space.data(), space.size(), &found) == 0 && found != nullptr;
  return (known ? std::string(found->pw_name) + " (uid " : "(uid ") + std::to_string(uid) + ")";
}

// Returns why a file must be neither believed nor replaced, or an empty text if it is ours. A user who can
// write the file could lead us to a store of theirs.
std::string why_not_ours(const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return "it is a folder";
  if (S_ISLNK(info.st_mode)) return "it is a symbolic link";
  if (!S_ISREG(info.st_mode)) return "it is not a regular file";
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return "it belongs to user " + user_name(info.st_uid) + ", and this process runs as user " +
           user_name(geteuid());
  }
  return {};
}

// Returns why the text in our own file cannot be trusted, or an empty text if it can.
std::string why_open_to_others(const struct stat& info) {
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  std::array<char, 8> mode;
  std::snprintf(mode.data(), mode.size(), "%04o", info.st_mode & 07777U);
  return std::string("its mode is ") + mode.data() + ", where only the owner may have rights (0600)";
}

Status refused(const std::string& path, const std::string& why) {
  return Status(Code::invalid_argument, "the session file " + path + " is refused and left alone: " + why);
}

// Puts the text at the path, replacing what is there.
Status replace_file(const std::string& path, std::string_view text) {
  // O_EXCL on a name that cannot be guessed makes the file ours alone on every file system.
  const std::string temporary = path + ".tmp-" + random_hex(8);
  Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return cannot_write(path, errno);
  int error = write_all(file.get(), text);
  struct stat info = {};
  if (error == 0 && fstat(file.get(), &info) != 0) error = errno;
  // On some file systems a new file belongs to another user, or has no mode. The other ranks would refuse it.
  std::string unfit = error == 0 ? why_not_ours(info) : std::string();
  if (error == 0 && unfit.empty()) unfit = why_open_to_others(info);
  // A network file system may report only here that it could not write.
  if (close(file.release()) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error == 0 && unfit.empty() && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0 && unfit.empty()) return {};
  unlink(temporary.c_str());
  if (error != 0) return cannot_write(path, error);
  return Status(Code::invalid_argument,
                "the file system of " + folder_of(path) +
                    " is not fit for a session file, as it makes of a new one: " + unfit);
}

Status not_there(const std::string& path, int error) {
  if (error == ENOTDIR) return Status(Code::invalid_argument, folder_of(path) + " is not a folder");
  struct stat info = {};
  if (error == ENOENT && stat(folder_of(path).c_str(), &info) != 0 && errno == ENOENT) {
    return Status(Code::invalid_argument,
                  "the folder " + folder_of(path) + " of the session file " + path + " does not exist");
  }
  if (error == ENOENT) return Status(Code::unreachable, "there is no session file " + path + " yet");
  if (lstat(path.c_str(), &info) == 0) {
    if (const std::string why = why_not_ours(info); !why.empty()) return refused(path, why);
  }
  return Status(Code::unreachable, "cannot read the session file " + path + ": " + error_text(error));
}

// Opens the file's folder. Network file systems remember for a while that a file does not exist; opening the
// folder makes them check again.
void refresh_folder(const std::string& path) {
  if (DIR* folder = opendir(folder_of(path).c_str())) closedir(folder);
}

// Reads the file if it is ours: an empty one, or one that begins like a session.
Result<Secret> read_ours(const std::string& path) {
  refresh_folder(path);
  // O_NONBLOCK is set, since a FIFO at that path must not block us.
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (!file) return not_there(path, errno);
  struct stat info = {};
  Secret text;
  int error = fstat(file.get(), &info) == 0 ? 0 : errno;
  std::string why = error == 0 ? why_not_ours(info) : std::string();
  if (error == 0 && why.empty()) error = text.read_from(file.get(), max_session_bytes + 1);
  file.reset();
  if (why.empty() && error != 0) return not_there(path, error);
  if (why.empty() && !text.empty()) {
    why = text.reveal().starts_with(magic)
              ? why_open_to_others(info)
              : "it holds something else than a session; give the ranks a path of their own";
  }
  if (!why.empty()) return refused(path, why);
  return text;
}

}  // namespace

Secret format_session(const SessionText& session) {
  std::string rest = "\nboot " + session.boot_id + "\n";
  for (const Endpoint& endpoint : session.endpoints) {
    rest += "endpoint " + endpoint.address + " " + std::to_string(endpoint.port) + "\n";
  }
  return Secret::joined(
      {heading, "\nnonce ", session.nonce, "\ntoken ", session.token.reveal(), rest, "end\n"});
}

Result<SessionText> parse_session(std::string_view text) {
  if (text.size() > max_session_bytes) return malformed("it is too long");
  if (text.empty()) return malformed("it is empty");
  if (!text.starts_with(magic)) return malformed("it is not a tutti session");
  Lines lines(text.substr(std::min(text.size(), heading.size() + 1)));
  if (!text.starts_with(std::string(heading) + "\n")) return malformed("it is of another version");
  const auto nonce = lines.value_of("nonce");
  if (!nonce || !is_hex(*nonce, nonce_digits)) return malformed("its nonce is missing or damaged");
  const auto token = lines.value_of("token");
  if (!token || !is_hex(*token, token_digits)) return malformed("its token is missing or damaged");
  const auto boot = lines.value_of("boot");
  if (!boot) return malformed("its boot id is missing");
  SessionText session{std::string(*nonce), Secret(*token), std::string(*boot), {}};
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
  const Result<Secret> text = read_ours(path);
  if (!text.ok()) return text.status();
  Result<SessionText> session = parse_session(text->reveal());
  if (session.ok()) return session;
  return Status(Code::unreachable,
                "the session file " + path + " holds no session yet: " + session.status().message());
}

PublishedSession::PublishedSession(std::string path, SessionText session)
    : path_(std::move(path)), session_(std::move(session)), owner_(getpid()) {}

PublishedSession::PublishedSession(PublishedSession&& other) noexcept
    : path_(std::exchange(other.path_, {})), session_(std::move(other.session_)), owner_(other.owner_) {}

Result<PublishedSession> PublishedSession::publish(const std::string& path, const SessionText& session) {
  if (const Status before = read_ours(path).status(); before.code() == Code::invalid_argument) return before;
  if (Status status = replace_file(path, format_session(session).reveal()); !status.ok()) return status;
  return PublishedSession(path, session);
}

void PublishedSession::restore_if_missing() const {
  struct stat info = {};
  if (lstat(path_.c_str(), &info) == 0 || errno != ENOENT) return;
  // A failure is ignored, since the next call tries again. If the failure lasts, the meeting ends with an
  // error that names the ranks that have not arrived.
  static_cast<void>(replace_file(path_, format_session(session_).reveal()).ok());
}

PublishedSession::~PublishedSession() {
  if (path_.empty() || getpid() != owner_) return;
  const Result<SessionText> now = read_session(path_);
  if (now.ok() && now->nonce == session_.nonce) unlink(path_.c_str());
}

}  // namespace tutti::file
