#include "tools/run/callback.h"

#include <utility>

#include <sys/socket.h>

#include "core/security/ends.h"
#include "tools/run/call_hello.h"
#include "transport/meeting/socket.h"

namespace tutti::tools {
namespace {

constexpr const char* listener_name = "calls of agents";

std::uint16_t bound_port(const Descriptor& listener) {
  SocketAddress address;
  address.length = sizeof address.storage;
  const auto raw = reinterpret_cast<sockaddr*>(&address.storage);
  return getsockname(listener.get(), raw, &address.length) == 0 ? address.port() : std::uint16_t{0};
}

// Listens at the address on a port of the range. It prefers the port `wanted`, unless that is 0 or
// not free.
Result<Descriptor> listen_at(const SocketAddress& address, std::uint16_t wanted, PortRange ports) {
  if (wanted != 0) {
    Result<Descriptor> socket =
        meeting::listen_on(listener_name, address.host(), wanted, wanted, prepare_call_socket);
    if (socket.ok()) return socket;
  }
  return meeting::listen_on(listener_name, address.host(), ports.first, ports.last, prepare_call_socket);
}

// Leaves out addresses that cannot be used, as long as one address remains. The kernel refuses the
// IPv6 addresses of a new network for a second or two, for example in a new pod. A lack of free ports,
// descriptors or memory is always an error.
Result<std::vector<Descriptor>> listen_on_all(std::span<const SocketAddress> addresses, PortRange ports) {
  std::vector<Descriptor> sockets;
  Status refusal;
  for (const SocketAddress& address : addresses) {
    const std::uint16_t wanted = sockets.empty() ? std::uint16_t{0} : bound_port(sockets.front());
    Result<Descriptor> socket = listen_at(address, wanted, ports);
    if (socket.ok()) {
      sockets.push_back(*std::move(socket));
    } else if (socket.status().code() == Code::resource_exhausted) {
      return socket.status();
    } else if (refusal.ok()) {
      refusal = socket.status();
    }
  }
  if (sockets.empty() && !refusal.ok()) return refusal;
  return sockets;
}

}  // namespace

Callback::Callback(EventLoop& loop, std::string job, OnAgent on_agent)
    : loop_(loop), job_(std::move(job)), on_agent_(std::move(on_agent)) {}

Callback::~Callback() { loop_.timers.cancel(*this); }

Result<std::unique_ptr<Callback>> Callback::open(EventLoop& loop, std::span<const SocketAddress> addresses,
                                                 const std::string& job, OnAgent on_agent,
                                                 const CallbackOptions& options) {
  Result<std::vector<Descriptor>> sockets = listen_on_all(addresses, options.ports.value_or(PortRange{0, 0}));
  if (!sockets.ok()) return sockets.status();
  std::unique_ptr<Callback> made(new Callback(loop, job, std::move(on_agent)));
  for (Descriptor& socket : *sockets) {
    const Status status = made->listen(std::move(socket), options.proof_limit);
    if (!status.ok()) return status;
  }
  return made;
}

Status Callback::listen(Descriptor socket, std::chrono::nanoseconds proof_limit) {
  const auto credentials_of = [this](std::uint32_t host) {
    const auto found = expected_.find(host);
    return found == expected_.end() ? nullptr : found->second;
  };
  const meeting::ListenerOptions options{.name = listener_name,
                                         .service = security::Service::launch,
                                         .credentials_of = credentials_of,
                                         .hello_limit = proof_limit};
  Port& port = *this;
  listeners_.push_back(std::make_unique<meeting::Listener>(loop_, std::move(socket), port, options));
  return listeners_.back()->start(static_cast<int>(security::nobody));
}

std::vector<std::string> Callback::endpoints() const {
  std::vector<std::string> endpoints;
  for (const auto& listener : listeners_) endpoints.push_back(security::own_address(listener->descriptor()));
  return endpoints;
}

Status Callback::expect(std::uint32_t host, std::string_view secret) {
  if (accepted_.contains(host)) return {};
  Result<security::SharedCredentials> credentials = call_credentials(job_, secret);
  if (!credentials.ok()) return credentials.status();
  expected_[host] = *std::move(credentials);
  return {};
}

std::size_t Callback::hello_bytes() const { return CallHello().size(); }

bool Callback::begins_like_hello(std::span<const std::byte> bytes) const {
  return begins_like_call_hello(bytes);
}

std::optional<std::uint32_t> Callback::claimed_rank(std::span<const std::byte> hello) const {
  return decode_call_hello(hello);
}

// The owner may destroy the listener when it learns of the last agent, but the listener must
// outlive this call. So a timer tells the owner later.
void Callback::on_hello(meeting::Guest guest) {
  const std::uint32_t host = *decode_call_hello(guest.hello);
  expected_.erase(host);
  accepted_.insert(host);
  arrivals_.push_back({host, std::move(guest.connection)});
  loop_.timers.set(*this, Deadline::after(std::chrono::nanoseconds(0)));
}

void Callback::on_timer() {
  if (arrivals_.empty()) return;
  Arrival arrival = std::move(arrivals_.front());
  arrivals_.pop_front();
  loop_.timers.set(*this, Deadline::after(std::chrono::nanoseconds(0)));
  const OnAgent tell = on_agent_;  // a copy, which stays valid if the owner destroys this object
  tell(arrival.host, std::move(arrival.connection));
}

}  // namespace tutti::tools
