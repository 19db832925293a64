#include "tools/run/terminal.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tutti::tools {

Terminal::Terminal(asio::io_context& io, int fd) : standard_fd_(fd), fd_(fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    problem_ = errno;
    return;
  }
  if (S_ISSOCK(status.st_mode)) {
    kind_ = Kind::socket;
  } else if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    // Other processes may share this open file, and O_NONBLOCK would affect them too. So this
    // process opens the file again for itself. If it is not permitted to do so, as with a terminal
    // of another user, our writes may block.
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const int own = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own >= 0) {
      kind_ = Kind::own;
      fd_ = own;
    }
  }
  if (kind_ == Kind::blocking) return;
  const int watch = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLOUT;
  if (watch < 0 || epoll_ctl(watch, EPOLL_CTL_ADD, fd_, &event) != 0) {
    // epoll rejects devices that are always ready, such as /dev/null.
    if (watch >= 0) close(watch);
    return;
  }
  writable_.emplace(io, watch);
}

Terminal::~Terminal() {
  if (kind_ == Kind::own) close(fd_);
}

bool Terminal::reader_gone() const { return problem_ == EPIPE || problem_ == ECONNRESET; }

std::string Terminal::name() const {
  const std::string stream = standard_fd_ == STDOUT_FILENO ? "stdout" : "stderr";
  std::error_code error;
  const auto target = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(standard_fd_), error);
  return error ? stream : stream + " (" + target.string() + ")";
}

ssize_t Terminal::write_some(std::string_view text) const {
  if (kind_ == Kind::socket) return send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return ::write(fd_, text.data(), text.size());
}

void Terminal::write(std::string_view text) {
  if (problem_ != 0 || text.empty()) return;
  backlog_.append(text);
  if (!waiting_) write_backlog();
}

void Terminal::write_backlog() {
  while (backlog() > 0) {
    const ssize_t bytes = write_some(std::string_view(backlog_).substr(written_));
    if (bytes > 0) {
      written_ += static_cast<std::size_t>(bytes);
    } else if (errno == EAGAIN && writable_) {
      await_writable();
      break;
    } else if (errno == EAGAIN) {
      // Another process that shares the file has made it non-blocking, so we wait here.
      pollfd wanted = {fd_, POLLOUT, 0};
      poll(&wanted, 1, -1);
    } else if (errno != EINTR) {
      problem_ = errno;
      break;
    }
  }
  if (problem_ != 0 || backlog() == 0) discard();
}

void Terminal::await_writable() {
  waiting_ = true;
  writable_->async_wait(asio::posix::stream_descriptor::wait_read, [this](const asio::error_code& error) {
    waiting_ = false;
    if (error) return;
    write_backlog();
    if (progress_) progress_();
  });
}

void Terminal::discard() {
  backlog_.clear();
  written_ = 0;
}

}  // namespace tutti::tools
