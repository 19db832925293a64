#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/meeting/address_text.h"
#include "transport/meeting/listener.h"

namespace tutti::meeting {

// `ListenPlaces` says where a transport listens over TCP.
struct ListenPlaces {
  // There is one listener at each of these numeric addresses. Peers try them in this order.
  std::vector<std::string> bind = {"127.0.0.1"};
  // These addresses are published in place of those in `bind`, if peers must use others (because of NAT, or a
  // service's name). They may be names, which are resolved when the transport is made. The first one stands
  // for the first listener, and so on.
  std::vector<std::string> advertise = {};
  // Listeners choose a port from this range. Zero means any port.
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
};

// Sets options of a socket that is about to listen at that address.
using PrepareSocket = std::function<void(int socket, const SocketAddress& address)>;

// `Listeners` are the listeners of one transport over TCP, and the endpoints that it publishes.
class Listeners {
 public:
  // Makes one listener for each address in `places.bind`. They all pass the connections that they accept to
  // `port`, which is the protocol's part of a listener, not a TCP port. Errors are as for `listen_on`
  // (socket.h).
  Status open(EventLoop& loop, Port& port, const ListenPlaces& places, const ListenerOptions& options,
              const PrepareSocket& prepare = {});
  // Returns the endpoints at which peers reach the listeners.
  const Endpoints& endpoints() const { return endpoints_; }
  // Starts accepting connections, as rank `self`.
  Status start(int self);
  void close() { listeners_.clear(); }

 private:
  std::vector<std::unique_ptr<Listener>> listeners_;
  Endpoints endpoints_;
};

}  // namespace tutti::meeting
