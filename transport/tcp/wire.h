#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <asio/buffer.hpp>

#include "core/security/tls.h"
#include "transport/tcp/socket.h"

namespace tutti::tcp {

// So few bytes are copied into one buffer: the kernel takes longer to read a list of buffers.
inline constexpr std::size_t gathered_bytes = 512;

// A connection, encrypted perhaps. Reads and writes like its socket, with the same errors.
class Wire {
 public:
  explicit Wire(asio::io_context& io) : socket_(io) {}
  explicit Wire(Socket socket) : socket_(std::move(socket)) {}

  Socket& socket() { return socket_; }
  int native_handle() { return socket_.native_handle(); }
  void close() {
    tls_.reset();
    asio::error_code error;
    socket_.close(error);
  }

  // From now on; null: not at all.
  void encrypt(std::unique_ptr<security::Tls> tls) { tls_ = std::move(tls); }

  // Encrypted, it fills the first buffer only, and no further than the end of a record.
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, asio::error_code& error) {
    if (tls_ == nullptr) [[likely]] {
      return socket_.read_some(buffers, error);
    }
    const asio::mutable_buffer first = *asio::buffer_sequence_begin(buffers);
    int failure = 0;
    const std::size_t got = tls_->read({static_cast<std::byte*>(first.data()), first.size()}, failure);
    error = failure == EPIPE ? asio::error_code(asio::error::eof)
                             : asio::error_code(failure, asio::error::get_system_category());
    return got;
  }

  // At most 16 buffers. What could not be written must be offered again.
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, asio::error_code& error) {
    if (tls_ == nullptr) [[likely]] {
      const std::size_t bytes = asio::buffer_size(buffers);
      if (bytes > gathered_bytes) return socket_.write_some(buffers, error);
      std::array<std::byte, gathered_bytes> gathered;
      asio::buffer_copy(asio::buffer(gathered), buffers);
      return socket_.write_some(asio::buffer(gathered.data(), bytes), error);
    }
    std::array<std::span<const std::byte>, 16> parts;
    std::size_t count = 0;
    const auto end = asio::buffer_sequence_end(buffers);
    for (auto next = asio::buffer_sequence_begin(buffers); next != end && count < parts.size(); ++next) {
      const asio::const_buffer part(*next);
      parts[count++] = {static_cast<const std::byte*>(part.data()), part.size()};
    }
    int failure = 0;
    const std::size_t written = tls_->write(std::span(parts).first(count), failure);
    error = written > 0 ? asio::error_code() : asio::error_code(failure, asio::error::get_system_category());
    return written;
  }

  // Whether a read may bring less than there is, or what the kernel does not announce any more.
  bool is_encrypted() const { return tls_ != nullptr; }
  bool has_pending() const { return tls_ != nullptr && tls_->has_pending(); }

 private:
  Socket socket_;
  std::unique_ptr<security::Tls> tls_;
};

}  // namespace tutti::tcp
