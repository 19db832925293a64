#include "rendezvous/meeting/session_file.h"

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

#include "core/descriptor.h"
#include "core/error_text.h"
#include "core/new_file.h"
#include "core/random.h"

namespace tutti::file {
namespace {

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

// Returns why this process must not trust or replace a file, or an empty text if the file is ours. A user who
// can write the file could lead us to a foreign store.
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
  // On some file systems a new file belongs to another user, or has no mode. The other ranks would refuse
  // such a file.
  std::string unfit = error == 0 ? why_not_ours(info) : std::string();
  if (error == 0 && unfit.empty()) unfit = why_open_to_others(info);
  // A network file system may report a failed write only when the file is closed.
  if (close(file.release()) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error == 0 && unfit.empty() && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0 && unfit.empty()) return {};
  unlink(temporary.c_str());
  if (error != 0) return cannot_write(path, error);
  return Status(
      Code::invalid_argument,
      "the file system of " + folder_of(path) +
          " cannot hold a session file: a new file there differs from what was asked for: " + unfit);
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

// Opens the file's folder. Network file systems remember for a while that a file does not exist. Opening the
// folder makes them check again.
void refresh_folder(const std::string& path) {
  if (DIR* folder = opendir(folder_of(path).c_str())) closedir(folder);
}

// Reads the file. Refuses a file that is not ours. Also refuses a file that is not empty if it does not begin
// like a session, or if others have rights to it.
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
    why = text.reveal().starts_with(session_magic)
              ? why_open_to_others(info)
              : "it does not hold a session; give the ranks another path";
  }
  if (!why.empty()) return refused(path, why);
  return text;
}

}  // namespace

SessionFile::SessionFile(std::string path) : path_(std::move(path)), owner_(getpid()) {}

Status SessionFile::publish(const Secret& text, Deadline) {
  if (Status before = read_ours(path_).status(); before.code() == Code::invalid_argument) return before;
  if (Status status = replace_file(path_, text.reveal()); !status.ok()) return status;
  published_ = text;
  return {};
}

Result<Secret> SessionFile::read(Deadline) { return read_ours(path_); }

void SessionFile::restore_if_missing() {
  struct stat info = {};
  if (published_.empty() || lstat(path_.c_str(), &info) == 0 || errno != ENOENT) return;
  // A failure is ignored, since the next call tries again. If the failure lasts, the meeting ends with an
  // error that names the ranks that have not arrived.
  static_cast<void>(replace_file(path_, published_.reveal()).ok());
}

SessionFile::~SessionFile() {
  if (published_.empty() || getpid() != owner_) return;
  const Result<Secret> now = read_ours(path_);
  if (now.ok() && now->reveal() == published_.reveal()) unlink(path_.c_str());
}

}  // namespace tutti::file
