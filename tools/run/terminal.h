#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

namespace tutti::tools {

// `Terminal` writes to one of our standard streams without ever blocking on its reader: a full pipe or a
// stopped terminal must not keep us from ending ranks. It leaves the stream's own flags alone, since the
// shell and others share them. It keeps output that cannot be written yet; its caller watches `backlog`.
class Terminal {
 public:
  Terminal(asio::io_context& io, int fd);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void write(std::string_view text);
  std::size_t backlog() const { return backlog_.size() - written_; }
  // The error that ended it, or 0. All output is dropped after that.
  int problem() const { return problem_; }
  // Returns whether the error is that the reader has gone away, as `head` does.
  bool reader_gone() const;
  // The descriptor's meaning: "stdout (/dev/full)".
  std::string name() const;
  void discard();
  // Called whenever the backlog has shrunk, or was dropped.
  void on_progress(std::function<void()> callback) { progress_ = std::move(callback); }

 private:
  ssize_t write_some(std::string_view text) const;
  void write_backlog();
  void await_writable();

  const int standard_fd_;
  int fd_;
  enum class Kind { blocking, own, socket } kind_ = Kind::blocking;
  // Readable when `fd_` can be written: asio itself would switch the shared socket to non-blocking.
  std::optional<asio::posix::stream_descriptor> writable_;
  bool waiting_ = false;
  int problem_ = 0;
  std::string backlog_;
  std::size_t written_ = 0;  // bytes at the front of the backlog
  std::function<void()> progress_;
};

}  // namespace tutti::tools
