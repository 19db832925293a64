#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tutti/address.h>
#include <tutti/status.h>

#include "core/descriptor.h"
#include "core/security/byte_stream.h"
#include "core/security/guard.h"

// The control plane makes sockets only here. Nothing here blocks; all sockets are close-on-exec, and a forked
// child has /dev/null in their place.
namespace tutti::liveness {

// `Stream` is a TCP connection, and the bytes on their way in either direction once `guard` has let it
// through.
class Stream {
 public:
  // `error` is that of the attempt to connect, if it has failed already.
  Stream(Descriptor socket, security::Guard guard, bool connected, int error = 0)
      : socket_(std::move(socket)), guard_(std::move(guard)), connected_(connected), error_(error) {}

  int descriptor() const { return socket_.get(); }
  // The events that poll() has to wait for.
  short events() const;
  // Called when one of them has happened. False if the connection has ended; `why` says how. The bytes that
  // had arrived before are in `received`.
  bool progress(short ready);
  // Returns true once the connection is made and the guard has let it through.
  bool connected() const { return connected_ && !guard_; }
  // The guard that has refused the connection; null if none has.
  const security::Guard* refused_by() const { return refused_by_guard_ ? &*guard_ : nullptr; }
  // Returns whether the peer has sent something that ranks begin with.
  bool has_begun() const { return !guard_ || guard_->has_begun(); }
  // The rank that has connected, where that was proved.
  std::optional<std::uint32_t> proved() const { return proved_; }

  void write(std::string_view bytes) { unsent_ += bytes; }
  // Writes as much as the kernel takes now. A failure shows in the next `progress`.
  void flush();
  std::size_t unsent() const { return unsent_.size(); }
  // Ends the writing side once all written bytes have left.
  void finish() { finishing_ = true; }

  std::string& received() { return received_; }
  const std::string& why() const { return why_; }
  // Nothing listens there.
  bool refused() const { return refused_; }
  // There is no route, or a firewall refuses.
  bool rejected() const;

 private:
  bool end(int error);
  bool receive();
  bool pass_guard();

  Descriptor socket_;
  std::optional<security::Guard> guard_;  // until it has let us through
  bool guard_writes_ = false;
  bool refused_by_guard_ = false;
  std::optional<std::uint32_t> proved_;
  security::ByteStream stream_;
  bool connected_;
  int error_;
  bool finishing_ = false;
  bool finished_ = false;
  bool refused_ = false;
  std::string unsent_, received_, why_;
};

// Listens on exactly that address, at the first free port of the range, or at any if `first_port` is zero.
Result<Descriptor> listen_on(const std::string& host, std::uint16_t first_port, std::uint16_t last_port);
std::uint16_t port_of(const Descriptor& listener);
// Accepts the next connection. If there is none, `scarce` is true if descriptors were lacking.
std::unique_ptr<Stream> accept_from(const Descriptor& listener, security::Guard guard, bool& scarce);
// Begins to connect. Returns null if that is impossible now.
std::unique_ptr<Stream> connect_to(const SocketAddress& address, security::Guard guard);

}  // namespace tutti::liveness
