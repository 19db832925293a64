#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tutti/credentials.h>
#include <tutti/export.h>
#include <tutti/status.h>

namespace tutti::tcp {

struct StoreServerOptions {
  // Literal addresses of this host to listen on; an empty one means all of them, IPv4 and IPv6.
  std::vector<std::string> addresses = {"127.0.0.1"};
  // 0: any free port. With `last_port`, the first free one of port..last_port.
  std::uint16_t port = 0;
  std::uint16_t last_port = 0;

  // A client that cannot prove that it has the same token is refused. Null accepts every client that reaches
  // the port.
  security::SharedCredentials credentials = {};

  std::size_t max_connections = 16384;
  // At most this many connections are strangers, which have not made a valid request yet. When there are
  // more, the server closes the oldest of the address that has the most. If the process may have few
  // descriptors, strangers get a quarter of them at most. If all connections together take three quarters of
  // the descriptors, strangers, and clients that hold nothing and have been idle for a second, are closed to
  // make room for ranks.
  std::size_t max_strangers = 512;
  // True if ranks hold keys here, as in a store that outlives them. Then, if nothing else makes room, clients
  // that wait for a key and hold none are closed.
  bool ranks_hold = false;
  std::size_t max_bytes = std::size_t{1} << 30;  // of keys and values
  // Limits the bytes of requests and responses under way, and of the keys that requests wait for. Small
  // requests always pass.
  std::size_t max_buffered_bytes = std::size_t{1} << 29;
  // A stranger may take `greeting_timeout` for its greeting and its first request. A client may take
  // `frame_timeout` for the next part of a request that it began, or for taking the next part of a response.
  std::chrono::milliseconds greeting_timeout{10'000};
  std::chrono::milliseconds frame_timeout{30'000};
};

// A `StoreServer` serves a store to `StoreClient`s, on one thread of its own. A client that sends garbage,
// stops in the middle or dies loses its connection; no other client notices.
//
// Destruction closes all connections and joins the thread. In a forked child a server does nothing, and its
// destruction leaves the parent's sockets alone.
class TUTTI_API StoreServer {
 public:
  struct Endpoint {
    std::string address;  // as bound; "0.0.0.0" or "::" for all
    std::uint16_t port;
  };

  // `resource_exhausted` if the port is in use; `invalid_argument` if the server can never listen there.
  static Result<std::unique_ptr<StoreServer>> create(const StoreServerOptions& options);
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  // The first endpoint's address and port.
  const std::string& address() const { return endpoints_.front().address; }
  std::uint16_t port() const { return endpoints_.front().port; }
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  // A random number of this server in hex, which `StoreClient::nonce` returns.
  const std::string& nonce() const { return nonce_; }
  // The number of connections at this moment, strangers included.
  std::size_t connections() const;
  // Says why the last refused rank was refused: it had another token, or none. Empty if no rank was refused.
  std::string last_refusal() const;

 private:
  class [[gnu::visibility("hidden")]] Impl;

  StoreServer(std::unique_ptr<Impl> impl, std::vector<Endpoint> endpoints, std::string nonce);

  std::unique_ptr<Impl> impl_;
  std::vector<Endpoint> endpoints_;
  std::string nonce_;
};

}  // namespace tutti::tcp
