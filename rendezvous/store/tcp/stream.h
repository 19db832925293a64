#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <tutti/address.h>
#include <tutti/deadline.h>
#include <tutti/status.h>

#include "core/descriptor.h"
#include "core/security/byte_stream.h"
#include "core/security/guard.h"

namespace tutti::store_wire {

// Half a minute after the other host has vanished without a word, the connection fails.
void set_keepalive(int fd);

// A TCP connection used by blocking calls with deadlines, from one thread at a time. Close-on-exec, never
// raises SIGPIPE, carries on after EINTR. After any failed call the position in the stream is unknown: close
// it.
class Stream {
 public:
  Stream() = default;
  // Takes over a connected socket that does not block.
  explicit Stream(Descriptor socket) : socket_(std::move(socket)) {}

  // `unreachable` with the system's reason if the address cannot be connected to.
  static Result<Stream> connect(const SocketAddress& address, Deadline deadline);

  // Before anything else: both sides prove who they are, and what follows may be encrypted. Its failures are
  // the guard's, and `timeout`.
  Status pass(security::Guard& guard, Deadline deadline);

  bool is_open() const { return static_cast<bool>(socket_); }
  void close();

  // `timeout` or `peer_lost`.
  Status send(const void* data, std::size_t bytes, Deadline deadline);
  Status receive(void* data, std::size_t bytes, Deadline deadline);
  // Appends to `data`, which grows as bytes arrive and not by what was announced.
  Status receive(std::string& data, std::size_t bytes, Deadline deadline);

  // The address of this end; family AF_UNSPEC if unknown.
  SocketAddress local_address() const;

 private:
  Status wait_for(short events, Deadline deadline) const;

  Descriptor socket_;
  security::ByteStream stream_;
};

}  // namespace tutti::store_wire
