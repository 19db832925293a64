#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <tutti/address.h>
#include <tutti/deadline.h>
#include <tutti/status.h>

#include "core/descriptor.h"
#include "core/security/byte_stream.h"
#include "core/security/guard.h"

namespace tutti::store_wire {

// Makes the connection fail half a minute after the other host has vanished.
void set_keepalive(int fd);

// `Stream` is a TCP connection. Its calls block, at most until their deadlines. Only one thread at a time may
// use it. It is close-on-exec, never raises SIGPIPE, and carries on after EINTR. After any failed call the
// position in the stream is unknown, so the stream must be closed.
class Stream {
 public:
  Stream() = default;
  // Takes over a connected socket that does not block.
  explicit Stream(Descriptor socket) : socket_(std::move(socket)) {}

  // Connects to the address. Fails with `unreachable` and the system's reason if that is not possible. There
  // are three other errors:
  // - `invalid_argument`: the address is a loopback address that this host lacks.
  // - `resource_exhausted`: there is no descriptor.
  // - `aborted`: `interrupted` has returned true.
  static Result<Stream> connect(const SocketAddress& address, Deadline deadline,
                                const std::function<bool()>& interrupted = {});

  // From now on, calls that wait for the other side ask `interrupted` repeatedly, and fail with `aborted`
  // once it returns true.
  void ask_when_waiting(std::function<bool()> interrupted) { interrupted_ = std::move(interrupted); }

  // Runs the guard, by which both sides prove who they are before they send anything else. They may also
  // agree to encrypt all that follows. Fails as the guard does, or with `timeout` or `aborted`.
  Status pass(security::Guard& guard, Deadline deadline);

  bool is_open() const { return static_cast<bool>(socket_); }
  void close();

  // These functions fail with `timeout`, `peer_lost` or `aborted`.
  Status send(const void* data, std::size_t bytes, Deadline deadline);
  Status receive(void* data, std::size_t bytes, Deadline deadline);
  // Appends `bytes` bytes to `data`. The text grows only as the bytes arrive: no memory is reserved for all
  // of them.
  Status receive(std::string& data, std::size_t bytes, Deadline deadline);
  // Waits for at least one byte, receives all bytes that have arrived, and returns their number.
  Result<std::size_t> receive_some(std::span<std::byte> place, Deadline deadline);

  // Returns the address of this end. Its family is AF_UNSPEC if it is unknown.
  SocketAddress local_address() const;

 private:
  Status wait_for(short events, Deadline deadline) const;

  Descriptor socket_;
  security::ByteStream stream_;
  std::function<bool()> interrupted_;
};

}  // namespace tutti::store_wire
