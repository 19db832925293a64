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

}  // namespace

Result<Descriptor> open_new_file(const std::string& path) {
  // O_NONBLOCK: a FIFO without a reader must not stop us.
  Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644));
  if (!file && errno == ELOOP) return Status(Code::invalid_argument, "it is a symbolic link");
  if (!file) return Status(Code::invalid_argument, error_text(errno));
  struct stat info = {};
  const bool regular = fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  if (regular && ftruncate(file.get(), 0) == 0) return file;
  return Status(Code::invalid_argument, regular ? error_text(errno) : "it is not a regular file");
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

}  // namespace tutti
