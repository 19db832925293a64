#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tutti/address.h>

#include "core/descriptor.h"
#include "core/security/guard.h"
#include "transport/meeting/connection.h"

namespace tutti::liveness {

// A `Stream` is a TCP connection of the control plane, with its unsent and received bytes. No byte passes
// before the guard has let the connection through. No function blocks. All sockets are close-on-exec, and a
// forked child has /dev/null in their place.
class Stream {
 public:
  // Makes a stream whose socket is connecting. `error` is the errno value of an attempt that has failed
  // already, or 0.
  Stream(Descriptor socket, security::Guard guard, int error = 0)
      : connection_(std::move(socket), std::move(guard)), error_(error) {}
  // Makes a stream from a connection that another rank has opened and that has passed its guard.
  explicit Stream(meeting::Connection accepted);

  int descriptor() const { return connection_.descriptor(); }
  // Returns the events that poll() must wait for.
  short events() const;
  // Makes progress after poll() has reported the events `ready`. Returns false if the connection has ended;
  // `why` then returns the reason. Bytes that arrived before the end are in `received`.
  bool progress(short ready);
  // Returns whether the connection is made and the guard has let it through.
  bool connected() const { return connected_ && !connection_.is_guarded(); }
  // Returns the guard, if it has refused the connection, and null otherwise.
  const security::Guard* refused_by() const { return refused_by_guard_ ? connection_.guard() : nullptr; }

  void write(std::string_view bytes) { unsent_ += bytes; }
  // Writes as much as the kernel accepts at once. The next `progress` reports a failure.
  void flush();
  std::size_t unsent() const { return unsent_.size(); }
  // Shuts down the sending side once all written bytes have been sent.
  void finish() { finishing_ = true; }

  std::string& received() { return received_; }
  const std::string& why() const { return why_; }
  // Returns whether the connection was refused because no process listens there.
  bool refused() const { return refused_; }
  // Returns whether the network or a firewall rejected the connection.
  bool rejected() const;

 private:
  bool end(int error);
  bool receive();
  bool pass_guard();

  meeting::Connection connection_;
  bool guard_writes_ = false;
  bool refused_by_guard_ = false;
  bool connected_ = false;
  int error_ = 0;
  bool finishing_ = false;
  bool finished_ = false;
  bool refused_ = false;
  std::string unsent_, received_, why_;
};

std::uint16_t port_of(const Descriptor& listener);
// Starts connecting. Returns null if no socket can be made; errno then says why.
std::unique_ptr<Stream> connect_to(const SocketAddress& address, security::Guard guard);

}  // namespace tutti::liveness
