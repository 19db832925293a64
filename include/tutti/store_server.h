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

  // A client that cannot prove that it has the same token gets nothing to see; null: every client that
  // reaches the port is let in.
  security::SharedCredentials credentials = {};

  std::size_t max_connections = 16384;
  // Of those, connections that have not made a valid request; beyond it the oldest one goes of those that
  // come from where most come from. A process that may have few descriptors gives a quarter of them at most.
  // Where all connections together have three quarters of them, strangers and clients that hold nothing and
  // have been idle for a second make room for new ones: what is left is for ranks.
  std::size_t max_strangers = 512;
  // Ranks hold their keys here, as they do at a store that outlives them. Where nothing else makes room,
  // clients go that wait for a key and hold none.
  bool ranks_hold = false;
  std::size_t max_bytes = std::size_t{1} << 30;  // of keys and values
  // Of requests and responses under way, and of the keys that requests wait for. Small ones pass all the
  // same.
  std::size_t max_buffered_bytes = std::size_t{1} << 29;
  // How long a stranger may keep us waiting for its greeting and its first request, and a client for the next
  // part of a request it began or for taking the next part of a response.
  std::chrono::milliseconds greeting_timeout{10'000};
  std::chrono::milliseconds frame_timeout{30'000};
};

// Serves a store to `StoreClient`s, on one thread of its own. A client that sends garbage, stops in the
// middle or dies loses its connection; nobody else notices.
//
// Destruction closes all connections and joins the thread. In a forked child a server does nothing, and its
// destruction leaves the parent's sockets alone.
class TUTTI_API StoreServer {
 public:
  struct Endpoint {
    std::string address;  // as bound; "0.0.0.0" or "::" for all
    std::uint16_t port;
  };

  // `resource_exhausted` if the port is in use; `invalid_argument` if it cannot be listened on at all.
  static Result<std::unique_ptr<StoreServer>> create(const StoreServerOptions& options);
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  // Of the first address.
  const std::string& address() const { return endpoints_.front().address; }
  std::uint16_t port() const { return endpoints_.front().port; }
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  // Random for each server, in hex; what `StoreClient::nonce` returns.
  const std::string& nonce() const { return nonce_; }
  // At this moment, strangers included.
  std::size_t connections() const;
  // Why the last one of ours that was turned away has been: another token, or none. Empty if there was none.
  std::string last_refusal() const;

 private:
  class [[gnu::visibility("hidden")]] Impl;

  StoreServer(std::unique_ptr<Impl> impl, std::vector<Endpoint> endpoints, std::string nonce);

  std::unique_ptr<Impl> impl_;
  std::vector<Endpoint> endpoints_;
  std::string nonce_;
};

}  // namespace tutti::tcp
