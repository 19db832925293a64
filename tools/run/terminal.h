#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

namespace tutti::tools {

// `Terminal` writes to one of our standard streams. It avoids blocking on the reader wherever this
// is possible. A full pipe or a stopped terminal must not prevent us from ending ranks. `Terminal`
// does not change the stream's flags, since other processes such as the shell share the stream. It
// keeps output that cannot be written yet, and the caller watches `backlog`.
class Terminal {
 public:
  Terminal(asio::io_context& io, int fd);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void write(std::string_view text);
  std::size_t backlog() const { return backlog_.size() - written_; }
  // Returns the errno that ended the output, or 0. After an error all output is dropped.
  int problem() const { return problem_; }
  // Returns whether `problem()` means that the reader has exited, as `head` does.
  bool reader_gone() const;
  // Returns the stream's name and its file, such as "stdout (/dev/full)".
  std::string name() const;
  void discard();
  // Sets a function that is called whenever some of the waiting output has been written, or all of it
  // has been dropped because of an error.
  void on_progress(std::function<void()> callback) { progress_ = std::move(callback); }

 private:
  ssize_t write_some(std::string_view text) const;
  void write_backlog();
  void await_writable();

  const int standard_fd_;
  int fd_;
  enum class Kind { blocking, own, socket } kind_ = Kind::blocking;
  // This is an epoll descriptor that watches `fd_`. It becomes readable when `fd_` can be written. asio
  // cannot wait on `fd_` itself, since it would make a shared socket non-blocking for its other users.
  std::optional<asio::posix::stream_descriptor> writable_;
  bool waiting_ = false;
  int problem_ = 0;
  std::string backlog_;
  std::size_t written_ = 0;  // bytes at the front of `backlog_` that are already written
  std::function<void()> progress_;
};

}  // namespace tutti::tools
