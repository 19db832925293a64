#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "core/security/byte_stream.h"
#include "transport/tcp/socket.h"

namespace tutti::tcp {

// A `Pipe` is one TCP connection: its socket and, if it is encrypted, its TLS state. Errors are the socket's
// error codes.
class Pipe {
 public:
  explicit Pipe(asio::io_context& io) : socket_(io) {}
  explicit Pipe(Socket socket) : socket_(std::move(socket)) {}

  Socket& socket() { return socket_; }
  int native_handle() { return socket_.native_handle(); }
  void close() {
    stream_.encrypt(nullptr);
    asio::error_code error;
    socket_.close(error);
  }

  // Encrypts everything from now on, unless `tls` is null.
  void encrypt(std::unique_ptr<security::Tls> tls) { stream_.encrypt(std::move(tls)); }

  // Reads into `places`. An encrypted pipe fills the first place only, and stops at the end of a record.
  std::size_t read(security::ByteStream::Places places, asio::error_code& error) {
    int failure = 0;
    const std::size_t got = stream_.read(native_handle(), places, failure);
    error = failure == EPIPE ? asio::error_code(asio::error::eof) : system_error(failure);
    return got;
  }
  std::size_t read(std::span<std::byte> place, asio::error_code& error) { return read({&place, 1}, error); }

  // Writes at most 16 parts, and returns how many bytes were written. The caller must pass the rest again.
  std::size_t write(security::ByteStream::Parts parts, asio::error_code& error) {
    int failure = 0;
    const std::size_t written = stream_.write(native_handle(), parts, failure);
    error = system_error(failure);
    return written;
  }
  std::size_t write(std::span<const std::byte> part, asio::error_code& error) {
    return write({&part, 1}, error);
  }

  // A read from an encrypted pipe may return fewer bytes than there are, and leave pending bytes that the
  // kernel does not announce again.
  bool is_encrypted() const { return stream_.is_encrypted(); }
  bool has_pending() const { return stream_.has_pending(); }

 private:
  static asio::error_code system_error(int error) { return {error, asio::error::get_system_category()}; }

  Socket socket_;
  security::ByteStream stream_;
};

}  // namespace tutti::tcp
