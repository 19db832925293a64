#include "core/new_file.h"

#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error_text.h"

namespace tutti {
namespace {

sigset_t file_size_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  return signals;
}

// Returns why an opened file is not a regular file with only one name, or an empty text if it is.
std::string why_not_alone(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return "it is not a regular file";
  return info.st_nlink > 1 ? "it is a hard link, a file with other names" : "";
}

bool is_of_others(const struct stat& info) { return info.st_uid != geteuid() && info.st_uid != 0; }

// Returns why we must not append to an opened file, or an empty text if we may. A pipe of this user is
// allowed, but another user's pipe might block us.
std::string why_not_ours_to_extend(const struct stat& info) {
  if (S_ISREG(info.st_mode)) return why_not_alone(info);
  return is_of_others(info) ? "it belongs to another user, and is not a regular file" : "";
}

// Opens a file. It follows links of this user and of the system (such as /dev/stdout), but not
// another user's links. On failure it returns -1 and sets errno (ELOOP for another user's link).
int open_unless_foreign_link(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_NOFOLLOW, 0644);
  const int error = errno;
  struct stat info = {};
  const bool link = fd < 0 && lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
  if (link && !is_of_others(info)) return open(path.c_str(), flags, 0644);
  errno = link ? ELOOP : error;
  return fd;
}

}  // namespace

Result<Descriptor> open_new_file(const std::string& path) {
  // O_NONBLOCK is set because a FIFO without a reader must not block us.
  Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644));
  if (!file && errno == ELOOP) return Status(Code::invalid_argument, "it is a symbolic link");
  if (!file) return Status(Code::invalid_argument, error_text(errno));
  struct stat info = {};
  std::string why = fstat(file.get(), &info) == 0 ? why_not_alone(info) : error_text(errno);
  if (why.empty() && ftruncate(file.get(), 0) != 0) why = error_text(errno);
  if (why.empty()) return file;
  return Status(Code::invalid_argument, why);
}

Result<Descriptor> open_to_append(const std::string& path) {
  Descriptor file(
      open_unless_foreign_link(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file && errno == ELOOP) return Status(Code::invalid_argument, "it is a symbolic link of another user");
  if (!file && errno == ENXIO) return Status(Code::invalid_argument, "it is a pipe without a reader");
  if (!file) return Status(Code::invalid_argument, error_text(errno));
  struct stat info = {};
  std::string why = fstat(file.get(), &info) == 0 ? why_not_ours_to_extend(info) : error_text(errno);
  if (why.empty() && fcntl(file.get(), F_SETFL, O_APPEND) != 0) why = error_text(errno);
  if (why.empty()) return file;
  return Status(Code::invalid_argument, why);
}

FileSizeSignalBlocked::FileSizeSignalBlocked() {
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
  const sigset_t signals = file_size_signal();
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

FileSizeSignalBlocked::~FileSizeSignalBlocked() {
  const int error = errno;
  const sigset_t signals = file_size_signal();
  const timespec at_once = {};
  while (!was_pending_ && sigtimedwait(&signals, nullptr, &at_once) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

int write_all(int descriptor, std::string_view text) {
  const FileSizeSignalBlocked no_signal;
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace tutti
