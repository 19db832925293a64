#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "core/descriptor.h"

namespace tutti::tools {

// An `InputPipe` passes bytes on to the stdin of a rank, and keeps the bytes that the rank has not
// read yet. Only the thread that runs `io` may use it, and SIGPIPE must be ignored.
class InputPipe {
 public:
  // Called with the number of bytes that have been passed on. After the reader has closed the pipe,
  // all bytes count as passed on.
  using OnTaken = std::function<void(std::size_t bytes)>;

  // Throws std::system_error if no pipe can be made.
  InputPipe(asio::io_context& io, OnTaken on_taken);

  // Returns the end of the pipe from which the rank reads. Close it after the rank has inherited
  // it.
  Descriptor take_reader() { return std::move(reader_); }
  void write(std::string_view bytes);
  // Closes the pipe after the kept bytes have been written.
  void end();
  bool has_ended() const { return ended_; }
  // Returns the number of bytes that are kept.
  std::size_t backlog() const { return kept_.size(); }

 private:
  void pass_on();
  void await_room();
  void close();

  asio::posix::stream_descriptor writer_;
  Descriptor reader_;
  OnTaken on_taken_;
  std::string kept_;
  bool waiting_ = false;
  bool ended_ = false;
};

}  // namespace tutti::tools
