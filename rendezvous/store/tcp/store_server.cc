#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <list>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tutti/address.h>
#include <tutti/log.h>
#include <tutti/store_server.h>

#include "core/descriptor.h"
#include "core/error_text.h"
#include "core/random.h"
#include "core/security/crowd.h"
#include "core/signals_blocked.h"
#include "rendezvous/store/tcp/store_connection.h"
#include "rendezvous/store/tcp/stream.h"
#include "transport/meeting/socket.h"

namespace tutti::tcp {
namespace {

using store_wire::ServerState;
using store_wire::StoreConnection;
using Standing = StoreConnection::Standing;

// While the process has no descriptors left, the server waits this long between attempts to accept.
constexpr std::chrono::milliseconds accept_pause{100};
constexpr int accepts_per_turn = 64;
// A client that has been silent for this long is dropped if room for others is scarce.
constexpr std::chrono::seconds patience_when_scarce{1};

struct Bound {
  Descriptor socket;
  StoreServer::Endpoint endpoint;
};

// Returns advice about a port that is in use. The kernel gives the ports of a certain range to outgoing
// connections. If this port is in that range, another program may have got the port by chance.
std::string other_port_advice(std::uint16_t port) {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  unsigned first = 0, last = 0;
  if (!(range >> first >> last) || port < first || port > last) return "; choose another port";
  return ", or an outgoing connection of any process has it, since the kernel gives those the ports from " +
         std::to_string(first) + " to " + std::to_string(last) +
         " (net.ipv4.ip_local_port_range); choose a port outside that range";
}

Status bind_failure(const SocketAddress& address, int error) {
  const std::string where = "port " + std::to_string(address.port()) + " on " + address.host();
  switch (error) {
    case EADDRINUSE:
      return Status(Code::resource_exhausted,
                    where +
                        " is in use: another process listens there (an earlier run, or "
                        "a second rank 0?)" +
                        other_port_advice(address.port()));
    case EADDRNOTAVAIL:
      return Status(Code::invalid_argument,
                    "cannot listen on " + address.host() + ": it is not an address of this host");
    case EACCES:
      return Status(Code::invalid_argument, "cannot listen on " + where + ": not permitted");
    default:
      return Status(Code::resource_exhausted, "cannot listen on " + where + ": " + error_text(error));
  }
}

Result<Bound> bind_one(SocketAddress address, bool both_families) {
  Descriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return bind_failure(address, errno);
  const int on = 1, v6_only = both_families ? 0 : 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.family() == AF_INET6) {
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
  }
  if (::bind(socket.get(), address.raw(), address.length) != 0) return bind_failure(address, errno);
  if (::listen(socket.get(), SOMAXCONN) != 0) return bind_failure(address, errno);
  address.length = sizeof(address.storage);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return Bound{std::move(socket), {address.host(), address.port()}};
}

Result<Bound> bind_port(const std::string& host, std::uint16_t port) {
  if (host.empty()) {
    // One IPv6 socket serves both families. If the port is in use, this call fails, and IPv4 is not tried. If
    // the socket fails for another reason, as on a host without IPv6, IPv4 is tried.
    Result<Bound> all = bind_one(*parse_address("::", port), true);
    if (all.ok() || all.status().message().find("is in use") != std::string::npos) return all;
    return bind_one(*parse_address("0.0.0.0", port), false);
  }
  const std::optional<SocketAddress> address = parse_address(host, port);
  if (!address)
    return Status(Code::invalid_argument, "cannot listen on '" + host + "': it is not an address");
  return bind_one(*address, false);
}

Result<Bound> bind_range(const std::string& host, std::uint16_t first, std::uint16_t last) {
  if (last <= first) return bind_port(host, first);
  for (unsigned port = first; port <= last; ++port) {
    Result<Bound> bound = bind_port(host, static_cast<std::uint16_t>(port));
    if (bound.ok() || bound.status().code() != Code::resource_exhausted) return bound;
  }
  return Status(Code::resource_exhausted, "no port of " + std::to_string(first) + "-" + std::to_string(last) +
                                              " is free on " + (host.empty() ? "this host" : host));
}

// Returns `wanted`, but at most `quarters` quarters of the number of descriptors that the process may open.
std::size_t most_connections(std::size_t wanted, std::size_t quarters) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return std::clamp<std::size_t>(quarters * limit.rlim_cur / 4, 1, wanted);
}

}  // namespace

class StoreServer::Impl {
 public:
  Impl(const StoreServerOptions& options, const store_wire::Nonce& nonce)
      : state_(options, nonce),
        most_strangers_(most_connections(options.max_strangers, 1)),
        most_clients_(most_connections(options.max_connections, 3)) {}

  void listen_on(Descriptor socket);
  void start();
  void stop();
  std::size_t connections() const { return count_.load(std::memory_order_relaxed); }
  std::uint64_t requests() const { return state_.requests.load(std::memory_order_relaxed); }
  std::string last_refusal() const { return state_.refusals.last(); }
  bool is_ours() const { return getpid() == owner_; }

 private:
  struct Listener {
    explicit Listener(asio::io_context& context) : acceptor(context), pause(context) {}
    asio::ip::tcp::acceptor acceptor;
    asio::steady_timer pause;
  };

  void await_client(Listener& listener);
  void accept_some(Listener& listener);
  void pause_accepting(Listener& listener, int why);
  void adopt(Descriptor descriptor);
  bool make_room(bool full);
  void move(StoreConnection& client);
  void forget(StoreConnection& client);
  std::list<StoreConnection*>& list_of(Standing standing) {
    return lists_[static_cast<std::size_t>(standing)];
  }

  const pid_t owner_ = getpid();
  asio::io_context context_{1};
  ServerState state_;
  const std::size_t most_strangers_;
  const std::size_t most_clients_;
  bool scarce_ = false;  // accepting has failed for lack of descriptors or memory, and the log says so
  std::list<Listener> listeners_;
  struct Client {
    std::shared_ptr<StoreConnection> connection;
    std::list<StoreConnection*>* list;
    std::list<StoreConnection*>::iterator place;
    std::uint64_t origin;  // see security::Crowd
    std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  };

  std::unordered_map<StoreConnection*, Client> clients_;
  // There is one list for each standing. In each list, the client that has had this standing longest comes
  // first.
  std::array<std::list<StoreConnection*>, 4> lists_;
  std::atomic<std::size_t> count_ = 0;
  std::thread thread_;
};

void StoreServer::Impl::listen_on(Descriptor socket) {
  Listener& listener = listeners_.emplace_back(context_);
  listener.acceptor.assign(asio::ip::tcp::v4(),
                           socket.get());  // the family only matters to calls that we do not make
  static_cast<void>(socket.release());
  await_client(listener);
}

void StoreServer::Impl::start() {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { context_.run(); });
}

void StoreServer::Impl::stop() {
  asio::post(context_, [this] {
    state_.service.stop();
    for (Listener& listener : listeners_) {
      asio::error_code ignored;
      listener.acceptor.close(ignored);
      listener.pause.cancel();
    }
    const auto clients = std::exchange(clients_, {});
    for (const auto& [key, client] : clients) client.connection->close();
  });
  if (thread_.joinable()) thread_.join();
}

void StoreServer::Impl::await_client(Listener& listener) {
  listener.acceptor.async_wait(asio::ip::tcp::acceptor::wait_read, [this, &listener](asio::error_code error) {
    if (!error) accept_some(listener);
  });
}

void StoreServer::Impl::accept_some(Listener& listener) {
  for (int i = 0; i < accepts_per_turn; ++i) {
    int error = 0;
    Descriptor accepted = meeting::accept_next(listener.acceptor.native_handle(), error);
    if (accepted) {
      scarce_ = false;
      adopt(std::move(accepted));
    } else if (error == EAGAIN) {
      break;
    } else if (meeting::is_scarcity(error) && (error != EMFILE || !make_room(true))) {
      return pause_accepting(listener, error);
    }
    // Other errors concern only that one connection.
  }
  await_client(listener);
}

void StoreServer::Impl::pause_accepting(Listener& listener, int why) {
  if (!std::exchange(scarce_, true))
    log::warn("the store: cannot accept a connection now: ", error_text(why));
  listener.pause.expires_after(accept_pause);
  listener.pause.async_wait([this, &listener](asio::error_code error) {
    if (!error) await_client(listener);
  });
}

void StoreServer::Impl::adopt(Descriptor descriptor) {
  auto& list = list_of(Standing::stranger);
  // The oldest stranger of the largest crowd is dropped, since it has had the most time. If that stranger is
  // only a slow client, it connects again.
  const auto crowd_of = [this](StoreConnection* known) {
    return security::Crowd{clients_.at(known).origin, known->has_begun()};
  };
  if (list.size() >= most_strangers_) (*security::first_to_go(list, crowd_of))->close();
  if (clients_.size() >= most_clients_) make_room(clients_.size() >= state_.options.max_connections);
  if (clients_.size() >= state_.options.max_connections) return;
  const int fd = descriptor.get(), on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  store_wire::set_keepalive(fd);
  asio::ip::tcp::socket socket(context_);
  asio::error_code error;
  socket.assign(asio::ip::tcp::v4(), fd, error);
  if (error) return;
  static_cast<void>(descriptor.release());
  const auto changed = [this](StoreConnection& connection) { move(connection); };
  const auto closed = [this](StoreConnection& connection) { forget(connection); };
  auto client = std::make_shared<StoreConnection>(std::move(socket), state_, changed, closed);
  clients_.emplace(client.get(),
                   Client{client, &list, list.insert(list.end(), client.get()), security::origin_of(fd)});
  count_.store(clients_.size(), std::memory_order_relaxed);
  client->start();
}

// Drops a client that has been silent for too long, and returns whether there was one. A busy client stays. A
// client whose standing is `waiting` waits for a key and holds none. If every rank holds keys here
// (`ranks_hold`), such a client is not a rank, and is dropped if the server is full.
bool StoreServer::Impl::make_room(bool full) {
  const auto now = std::chrono::steady_clock::now();
  for (const Standing standing : {Standing::stranger, Standing::idle, Standing::waiting}) {
    if (standing == Standing::waiting && !(full && state_.options.ranks_hold)) break;
    const auto& list = list_of(standing);
    if (list.empty() || now - clients_.at(list.front()).since < patience_when_scarce) continue;
    list.front()->close();
    return true;
  }
  return false;
}

void StoreServer::Impl::move(StoreConnection& client) {
  const auto found = clients_.find(&client);
  if (found == clients_.end()) return;
  auto& list = list_of(client.standing());
  list.splice(list.end(), *found->second.list, found->second.place);
  found->second.list = &list;
  found->second.since = std::chrono::steady_clock::now();
}

void StoreServer::Impl::forget(StoreConnection& client) {
  const auto found = clients_.find(&client);
  if (found == clients_.end()) return;
  found->second.list->erase(found->second.place);
  clients_.erase(found);
  count_.store(clients_.size(), std::memory_order_relaxed);
}

Result<std::unique_ptr<StoreServer>> StoreServer::create(const StoreServerOptions& options) {
  std::vector<Bound> bound;
  for (const std::string& address : options.addresses) {
    Result<Bound> one = bind_range(address, options.port, options.last_port);
    if (!one.ok()) return one.status();
    bound.push_back(*std::move(one));
  }
  if (bound.empty()) return Status(Code::invalid_argument, "a store server needs an address to listen on");
  store_wire::Nonce nonce;
  fill_random(nonce);
  try {
    auto impl = std::make_unique<Impl>(options, nonce);
    std::vector<Endpoint> endpoints;
    for (Bound& one : bound) {
      endpoints.push_back(one.endpoint);
      impl->listen_on(std::move(one.socket));
    }
    impl->start();
    return std::unique_ptr<StoreServer>(
        new StoreServer(std::move(impl), std::move(endpoints), to_hex(nonce)));
  } catch (const std::system_error& error) {
    return Status(Code::resource_exhausted,
                  "cannot start the store's server: " + error_text(error.code().value()));
  }
}

StoreServer::StoreServer(std::unique_ptr<Impl> impl, std::vector<Endpoint> endpoints, std::string nonce)
    : impl_(std::move(impl)), endpoints_(std::move(endpoints)), nonce_(std::move(nonce)) {}

StoreServer::~StoreServer() {
  if (impl_->is_ours()) {
    impl_->stop();
  } else {
    // A forked child shares the parent's epoll descriptor; destroying `impl_` would unregister the parent's
    // sockets.
    static_cast<void>(impl_.release());
  }
}

std::size_t StoreServer::connections() const { return impl_->connections(); }

std::uint64_t StoreServer::requests() const { return impl_->requests(); }

std::string StoreServer::last_refusal() const { return impl_->last_refusal(); }

}  // namespace tutti::tcp
