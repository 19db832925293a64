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

// `StoreServerOptions` are the options of `StoreServer::create`.
struct StoreServerOptions {
  // Literal addresses of this host to listen on; an empty text means all addresses, IPv4 and IPv6.
  std::vector<std::string> addresses = {"127.0.0.1"};
  // 0 means any free port. With `last_port`, the server takes the first free port of port..last_port.
  std::uint16_t port = 0;
  std::uint16_t last_port = 0;

  // Clients must prove that they have the same token. Null accepts every client that reaches the port.
  security::SharedCredentials credentials = {};

  std::size_t max_connections = 16384;
  // A stranger is a connection that has not made a valid request yet. The strangers from one address
  // (for IPv6, one network of 64 bits) form two crowds: those that have begun the handshake, and the others.
  // If there are more strangers than this, the server closes the oldest one of the largest crowd. Strangers
  // get at most a quarter of the descriptors that this process may open. When all connections together use
  // three quarters of these descriptors, the server makes room for new ones. For each new
  // connection, it then closes a stranger that is at least a second old, or an idle client that
  // holds no keys and has sent nothing for a second. So a quarter stays free for new ranks.
  std::size_t max_strangers = 512;
  // Tells the server that every rank holds its keys here (`Store::hold`), as ranks do at a store
  // that outlives them. A client that holds no keys is then not a rank, so the server may close its
  // connection even while the client waits for a key. The server closes such a client only if it
  // cannot make room in another way.
  bool ranks_hold = false;
  std::size_t max_bytes = std::size_t{1} << 30;  // of keys and values
  // Limits the bytes of requests and responses in progress, and of the keys that requests wait for. Small
  // requests are accepted even beyond this limit.
  std::size_t max_buffered_bytes = std::size_t{1} << 29;
  // `greeting_timeout` limits a stranger's greeting and first request. `frame_timeout` limits how long a
  // client may take to send the next part of a request, or to read the next part of a response.
  std::chrono::milliseconds greeting_timeout{10'000};
  std::chrono::milliseconds frame_timeout{30'000};
};

// A `StoreServer` serves a store to `StoreClient`s, on a separate thread. It closes the connection
// of a client that sends garbage, stops in the middle of a request, or dies. Other clients do not notice. Any
// thread may call it.
//
// Its destructor closes all connections and joins the thread. In a forked child a server does nothing, and
// its destructor leaves the parent's sockets alone.
class TUTTI_API StoreServer {
 public:
  struct Endpoint {
    std::string address;  // as bound; "0.0.0.0" or "::" for all
    std::uint16_t port;
  };

  // Starts a server. Errors: `resource_exhausted` if the port is in use; `invalid_argument` if this host
  // cannot listen on the address or the port at all.
  static Result<std::unique_ptr<StoreServer>> create(const StoreServerOptions& options);
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  // Return the first endpoint's address and port, and all endpoints.
  const std::string& address() const { return endpoints_.front().address; }
  std::uint16_t port() const { return endpoints_.front().port; }
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  // Returns a random number of this server, in hex; `StoreClient::nonce` returns it to clients.
  const std::string& nonce() const { return nonce_; }
  // Returns the number of connections at this moment, strangers included.
  std::size_t connections() const;
  // Returns the number of valid requests since the server's start.
  std::uint64_t requests() const;
  // Describes the most recent refusal of a tutti process that could not prove that it belongs to
  // the job. The text is empty if there was no such refusal.
  std::string last_refusal() const;

 private:
  class [[gnu::visibility("hidden")]] Impl;

  StoreServer(std::unique_ptr<Impl> impl, std::vector<Endpoint> endpoints, std::string nonce);

  std::unique_ptr<Impl> impl_;
  std::vector<Endpoint> endpoints_;
  std::string nonce_;
};

}  // namespace tutti::tcp
