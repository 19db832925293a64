#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

namespace tutti::tools {

// An `InputSource` reads the launcher's stdin for rank 0, but never more than rank 0's host can
// take. It does not change the flags of the descriptor, since other processes may share the open
// file. Only the thread that runs `io` may use it.
class InputSource {
 public:
  // Called with the bytes that were read. No bytes mean the end of the input.
  using OnInput = std::function<void(std::string_view bytes)>;

  // Reads at most `credit` bytes before `give` allows more.
  InputSource(asio::io_context& io, int fd, std::size_t credit, OnInput on_input);

  void give(std::uint64_t credit);

 private:
  void await_input();
  void read_some();

  asio::io_context& io_;
  const int fd_;
  const OnInput on_input_;
  // This is an epoll descriptor that watches `fd_`, since asio would make `fd_` itself
  // non-blocking. There is no such descriptor if `fd_` is a file: epoll cannot watch files, and a
  // file is always ready.
  std::optional<asio::posix::stream_descriptor> readable_;
  std::vector<char> buffer_;
  std::uint64_t credit_;
  bool waiting_ = false;
  bool ended_ = false;
};

}  // namespace tutti::tools
