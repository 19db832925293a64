#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tutti/core/error_text.h>
#include <tutti/core/new_file.h>

namespace tutti {
namespace {

sigset_t file_size_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  return signals;
}

}  // namespace

Result<int> open_new_file(const std::string& path) {
  // O_NONBLOCK: a FIFO without a reader must not stop us.
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
  if (fd < 0 && errno == ELOOP) return Status(Code::invalid_argument, "it is a symbolic link");
  if (fd < 0) return Status(Code::invalid_argument, error_text(errno));
  struct stat info = {};
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (regular && ftruncate(fd, 0) == 0) return fd;
  const int error = errno;
  close(fd);
  return Status(Code::invalid_argument, regular ? error_text(error) : "it is not a regular file");
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
