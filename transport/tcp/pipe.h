#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "core/security/byte_stream.h"
#include "transport/tcp/socket.h"

namespace tutti::tcp {

// A `Pipe` is one TCP connection: its socket and, if it is encrypted, its TLS state. Errors are errno values,
// as ByteStream describes them.
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

  // An encrypted pipe stops at the end of a record.
  std::size_t read(std::span<std::byte> place, int& error) {
    return stream_.read(native_handle(), place, error);
  }
  // Reads into `first` and then `second`. An encrypted pipe fills only `first`.
  std::size_t read(std::span<std::byte> first, std::span<std::byte> second, int& error) {
    return stream_.read(native_handle(), first, second, error);
  }

  // Writes at most 16 parts. The caller must pass again any bytes that could not be written.
  std::size_t write(security::ByteStream::Parts parts, int& error) {
    return stream_.write(native_handle(), parts, error);
  }
  std::size_t write(std::span<const std::byte> part, int& error) { return write({&part, 1}, error); }

  // A read from an encrypted pipe may return fewer bytes than there are, and leave pending bytes that the
  // kernel does not announce again.
  bool is_encrypted() const { return stream_.is_encrypted(); }
  bool has_pending() const { return stream_.has_pending(); }

 private:
  Socket socket_;
  security::ByteStream stream_;
};

}  // namespace tutti::tcp
