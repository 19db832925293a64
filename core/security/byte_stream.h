#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "core/security/tls.h"

namespace tutti::security {

// A `ByteStream` reads and writes a connected socket that its caller owns. After `encrypt`, it does so
// through TLS. It never blocks and never raises SIGPIPE.
//
// Every call returns how many bytes it moved, or zero with an error. The error is EAGAIN until the socket is
// ready again. A read fails with EPIPE if the other side has closed the connection.
class ByteStream {
 public:
  using Parts = std::span<const std::span<const std::byte>>;

  // From now on, reads and writes go through `tls` or, if it is null, through the socket itself.
  void encrypt(std::unique_ptr<Tls> tls) { tls_ = std::move(tls); }
  bool is_encrypted() const { return tls_ != nullptr; }
  // Returns null if the stream is not encrypted.
  Tls* tls() const { return tls_.get(); }
  std::unique_ptr<Tls> take_tls() { return std::move(tls_); }
  // Returns whether the stream holds received bytes. poll() does not report these bytes.
  bool has_pending() const { return tls_ != nullptr && tls_->has_pending(); }

  std::size_t read(int socket, std::span<std::byte> place, int& error);
  // Reads into `first` and then `second`. An encrypted stream fills only `first`.
  std::size_t read(int socket, std::span<std::byte> first, std::span<std::byte> second, int& error);
  // Writes at most 16 parts. The caller must call `write` again with the bytes that were not written.
  std::size_t write(int socket, Parts parts, int& error);
  std::size_t write(int socket, std::span<const std::byte> part, int& error) {
    return write(socket, Parts(&part, 1), error);
  }

 private:
  std::unique_ptr<Tls> tls_;
};

}  // namespace tutti::security
