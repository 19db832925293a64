#include "tools/run/dial.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <tutti/address.h>
#include <tutti/deadline.h>

#include "core/error_text.h"
#include "core/security/guard.h"
#include "tools/run/call_hello.h"

namespace tutti::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The first attempt at an endpoint is short, since the network may silently drop the packets. The
// attempts of each further round may take longer, since the launcher may be busy.
constexpr milliseconds first_patience{500};
// The pause before a second try is short, since the launcher often receives the call a little
// earlier than the secret.
constexpr milliseconds first_wait{10}, longest_wait{200};

struct Endpoint {
  std::string text;
  SocketAddress address;
  std::string reason = {};  // why the last call failed
};

std::optional<SocketAddress> parse_literal(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (rest != end || error != std::errc() || port == 0) return std::nullopt;
  return parse_address(text.substr(0, colon), port);
}

// A `Dialer` makes the attempts of one `dial`.
class Dialer {
 public:
  Dialer(const Call& call, std::vector<Endpoint> endpoints, security::SharedCredentials credentials)
      : call_(call),
        endpoints_(std::move(endpoints)),
        credentials_(std::move(credentials)),
        deadline_(Deadline::after(call.limit)) {}

  Result<meeting::Connection> run() {
    nanoseconds patience = first_patience, pause = first_wait;
    while (!deadline_.expired()) {
      for (Endpoint& endpoint : endpoints_) {
        Result<meeting::Connection> made =
            call(endpoint.address, earlier(deadline_, Deadline::after(patience)));
        if (made.ok() || made.status().code() == Code::aborted) return made;
        // The deadline may cut the last attempt short. The reason for the earlier failure then says
        // more.
        if (endpoint.reason.empty() || !deadline_.expired()) endpoint.reason = made.status().message();
      }
      const Status waited = await(-1, 0, earlier(deadline_, Deadline::after(pause)));
      if (waited.code() == Code::aborted) return waited;
      pause = std::min<nanoseconds>(2 * pause, longest_wait);
      patience = std::min(2 * patience, call_.limit);
    }
    return Status(Code::timeout, "the launcher cannot be called back" + reasons() +
                                     " (--call-back ADDRESS and TUTTI_PORT_RANGE choose where)");
  }

 private:
  Result<meeting::Connection> call(const SocketAddress& address, Deadline limit) {
    Result<Descriptor> socket = connect(address, limit);
    if (!socket.ok()) return socket.status();
    const security::Parties parties{security::Service::launch, call_.host, security::nobody};
    meeting::Connection connection(*std::move(socket),
                                   security::Guard::connecting(credentials_, parties, limit));
    Status status = pass(connection, limit);
    if (status.ok()) status = greet(connection, limit);
    if (!status.ok()) return status;
    return connection;
  }

  Result<Descriptor> connect(const SocketAddress& address, Deadline limit) const {
    Descriptor made = Descriptor::guarded(
        socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
    if (!made) return Status(Code::resource_exhausted, error_text(errno));
    prepare_call_socket(made.get());
    if (::connect(made.get(), address.raw(), address.length) != 0 && errno != EINPROGRESS && errno != EINTR)
      return Status(Code::unreachable, error_text(errno));
    if (const Status status = await(made.get(), POLLOUT, limit); !status.ok()) return status;
    int error = 0;
    socklen_t length = sizeof error;
    static_cast<void>(getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &length));
    if (error != 0) return Status(Code::unreachable, error_text(error));
    return made;
  }

  Status pass(meeting::Connection& connection, Deadline limit) const {
    using State = security::Guard::State;
    for (;;) {
      const State state = connection.pass();
      if (state == State::done) return {};
      if (state == State::failed) {
        const Status& why = connection.guard()->status();
        if (why.code() != Code::unreachable) return why;
        return Status(Code::unreachable, "the process there does not expect this agent");
      }
      const short events = state == State::writing ? POLLOUT : POLLIN;
      if (const Status status = await(connection.descriptor(), events, limit); !status.ok()) return status;
    }
  }

  Status greet(meeting::Connection& connection, Deadline limit) const {
    const CallHello hello = encode_call_hello(call_.host);
    std::size_t sent = 0;
    while (sent < hello.size()) {
      int error = 0;
      sent += connection.write(std::span(hello).subspan(sent), error);
      if (error != 0 && error != EAGAIN) return Status(Code::peer_lost, error_text(error));
      if (error == 0) continue;
      if (const Status status = await(connection.descriptor(), POLLOUT, limit); !status.ok()) return status;
    }
    return {};
  }

  // Waits for one of `events` on the descriptor. Returns `timeout` at the limit, and `aborted` if
  // the launcher has given up the call.
  Status await(int descriptor, short events, Deadline limit) const {
    for (;;) {
      pollfd waits[] = {{descriptor, events, 0}, {call_.abandoned, 0, 0}};
      const auto left = std::chrono::ceil<milliseconds>(limit.remaining());
      const int ready =
          poll(waits, 2, static_cast<int>(std::min<milliseconds>(left, milliseconds(60'000)).count()));
      if ((waits[1].revents & (POLLERR | POLLHUP)) != 0)
        return Status(Code::aborted, "the launcher does not wait for this agent any more");
      if (ready > 0 && waits[0].revents != 0) return {};
      if (limit.expired()) return Status(Code::timeout, "no answer in time");
    }
  }

  std::string reasons() const {
    std::string text;
    for (const Endpoint& endpoint : endpoints_)
      text += (text.empty() ? ": " : "; ") + endpoint.text + ": " + endpoint.reason;
    return text;
  }

  const Call& call_;
  std::vector<Endpoint> endpoints_;
  const security::SharedCredentials credentials_;
  const Deadline deadline_;
};

}  // namespace

Result<meeting::Connection> dial(const Call& call) {
  std::vector<Endpoint> endpoints;
  for (const std::string& text : call.endpoints) {
    const std::optional<SocketAddress> address = parse_literal(text);
    if (!address) return Status(Code::invalid_argument, "`" + text + "` is not an address and a port");
    endpoints.push_back({text, *address});
  }
  Result<security::SharedCredentials> credentials = call_credentials(call.job, call.secret);
  if (!credentials.ok()) return credentials.status();
  return Dialer(call, std::move(endpoints), *std::move(credentials)).run();
}

}  // namespace tutti::tools
