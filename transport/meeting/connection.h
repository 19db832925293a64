#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "core/descriptor.h"
#include "core/security/byte_stream.h"
#include "core/security/guard.h"

namespace tutti::meeting {

// A `Connection` is a connected socket, with a guard and encryption. Both sides must first pass the guard,
// which makes them prove that they belong together. Everything that follows may be encrypted. No function
// blocks. Errors are errno values, as ByteStream describes them.
class Connection {
 public:
  Connection() = default;
  explicit Connection(Descriptor socket) : socket_(std::move(socket)) {}
  Connection(Descriptor socket, security::Guard guard) : Connection(std::move(socket)) {
    guard_by(std::move(guard));
  }

  int descriptor() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  void close() {
    stream_.encrypt(nullptr);
    socket_.reset();
  }

  // Makes both sides pass `guard` before anything else is read or written.
  void guard_by(security::Guard guard) { guard_ = std::make_unique<security::Guard>(std::move(guard)); }
  // Advances the guard. If the result is `reading` or `writing`, call this again when the socket is readable
  // or writable. Nothing else may be read or written before the result is `done`.
  security::Guard::State pass();
  // Returns the guard, or null if there is none or both sides have passed it. A guard that has failed is
  // still returned.
  const security::Guard* guard() const { return guard_.get(); }
  bool is_guarded() const { return guard_ != nullptr; }
  // On the accepting side, returns the rank that has connected, or nothing if the peer has not proved which
  // rank it is.
  std::optional<std::uint32_t> proved() const { return proved_; }

  // A read from an encrypted connection stops at the end of a record.
  std::size_t read(std::span<std::byte> place, int& error) {
    return stream_.read(socket_.get(), place, error);
  }
  // Reads into `first` and then `second`. An encrypted connection fills only `first`.
  std::size_t read(std::span<std::byte> first, std::span<std::byte> second, int& error) {
    return stream_.read(socket_.get(), first, second, error);
  }
  // Writes at most 16 parts. Returns how many bytes were written. The next call must begin with the first
  // byte that was not written.
  std::size_t write(security::ByteStream::Parts parts, int& error) {
    return stream_.write(socket_.get(), parts, error);
  }
  std::size_t write(std::span<const std::byte> part, int& error) { return write({&part, 1}, error); }

  // A read from an encrypted connection may return fewer bytes than have arrived. The rest is then pending:
  // the kernel does not report the socket as readable because of these bytes.
  bool is_encrypted() const { return stream_.is_encrypted(); }
  bool has_pending() const { return stream_.has_pending(); }

 private:
  Descriptor socket_;
  std::unique_ptr<security::Guard> guard_;
  std::optional<std::uint32_t> proved_;
  security::ByteStream stream_;
};

}  // namespace tutti::meeting
