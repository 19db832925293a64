#include "transport/meeting/listeners.h"

#include <utility>

#include "transport/meeting/socket.h"

namespace tutti::meeting {
namespace {

// A name service that does not answer must not delay the start of the process for ever.
constexpr std::chrono::seconds patience_with_names{30};

bool is_unspecified(const SocketAddress& address) {
  const std::string host = address.host();
  return host == "0.0.0.0" || host == "::";
}

// Returns the endpoint that `host` stands for. Peers use it instead of the address that a listener is bound
// to. This may ask a name server, so it is called only when the transport is made.
Result<SocketAddress> advertised(const std::string& host, std::uint16_t port) {
  const auto found = resolve(host, port, Deadline::after(patience_with_names));
  if (found.ok()) return found->front();
  return Status(Code::invalid_argument, "the advertised address " + host +
                                            " is neither an address nor a name: " + found.status().message());
}

Result<Descriptor> make_socket(const std::string& who, const ListenPlaces& places, std::size_t place,
                               const PrepareSocket& prepare) {
  const std::string& host = places.bind[place];
  const auto address = parse_address(host, 0);
  if (!address) return Status(Code::invalid_argument, who + ": not an address to listen on: " + host);
  return listen_on(who, host, places.first_port, places.last_port, [&](int descriptor) {
    if (prepare) prepare(descriptor, *address);
  });
}

// Returns the endpoint at which peers reach the socket of this place.
Result<SocketAddress> endpoint_of(int socket, const ListenPlaces& places, std::size_t place) {
  auto endpoint = local_address(socket);
  if (!endpoint) return Status(Code::internal, "a listening socket has no address");
  if (place < places.advertise.size() && !places.advertise[place].empty()) {
    const auto instead = advertised(places.advertise[place], endpoint->port());
    if (!instead.ok()) return instead.status();
    endpoint = *instead;
  }
  if (!is_unspecified(*endpoint)) return *endpoint;
  return Status(Code::invalid_argument,
                "listening on " + places.bind[place] +
                    " needs an address to advertise, since peers cannot use that one");
}

}  // namespace

Status Listeners::open(EventLoop& loop, Port& port, const ListenPlaces& places,
                       const ListenerOptions& options, const PrepareSocket& prepare) {
  const std::string who = options.name;
  if (places.last_port != 0 && places.last_port < places.first_port) {
    return Status(Code::invalid_argument, who + ": the port range " + std::to_string(places.first_port) +
                                              "-" + std::to_string(places.last_port) + " is empty");
  }
  if (places.bind.empty()) return Status(Code::invalid_argument, who + ": no address to listen on");
  for (std::size_t i = 0; i < places.bind.size(); ++i) {
    auto socket = make_socket(who, places, i, prepare);
    if (!socket.ok()) return socket.status();
    const auto endpoint = endpoint_of(socket->get(), places, i);
    if (!endpoint.ok()) return endpoint.status().with_context(who);
    endpoints_.push_back(*endpoint);
    listeners_.push_back(std::make_unique<Listener>(loop, *std::move(socket), port, options));
  }
  return {};
}

Status Listeners::start(int self) {
  for (auto& listener : listeners_) {
    if (const Status started = listener->start(self); !started.ok()) return started;
  }
  return {};
}

}  // namespace tutti::meeting
