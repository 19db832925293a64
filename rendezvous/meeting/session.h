#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <tutti/address.h>
#include <tutti/credentials.h>
#include <tutti/deadline.h>
#include <tutti/status.h>
#include <tutti/store.h>

#include "rendezvous/launch/interfaces.h"
#include "rendezvous/launch/launch.h"

namespace tutti {

struct SessionOptions {
  std::string bind_address;                     // literal; empty: derived from where the ranks meet
  std::string advertise_address;                // file sessions: told to the others in place of the bound one
  std::uint16_t first_port = 0, last_port = 0;  // for ports that we may choose; 0: any
  InterfaceFilter interfaces;                   // file sessions: where to listen besides loopback
  security::Settings security = {};             // file sessions add a token of their own
  // Called repeatedly while the store is looked for. If it returns true, that ends with `aborted`.
  std::function<bool()> interrupted = {};
};

// `Session` is the store of one meeting, and what rank 0 needs to serve it. On destruction the server stops
// and the session file is removed. Destroy it only after `exchange`, or the others lose the store.
class Session {
 public:
  Session();
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;
  ~Session();

  std::shared_ptr<Store> store;
  // The store exists for this meeting only; see ExchangeOptions.
  bool single_use = false;
  // The credentials prove to the others that this process belongs to the job; null: it proves nothing.
  security::SharedCredentials credentials;
  // The local address of packets to the store, if that shows which interface reaches the others. It may not
  // on rank 0, or if a host's name means loopback on the host itself (Debian's 127.0.1.1).
  std::optional<SocketAddress> route;

  // Set on the rank that serves the store, if the others may not find it: the reason.
  std::string doubt;

  // On the rank that serves the store: why it refused the last tutti process that wanted to meet here. Empty
  // if there was none.
  std::string last_refusal() const;
  // Rank 0 calls this while it waits. It restores a session file that has vanished.
  void keep_alive() const;

 private:
  friend class SessionMaker;
  struct Serving;
  std::unique_ptr<Serving> serving_;
};

// Rank 0 serves the store, unless another process does. All ranks connect to it. Retries until the deadline.
// A world of one rank gets a store in memory.
Result<Session> serve_or_connect(const Launch& launch, const SessionOptions& options, Deadline deadline);

// The addresses that rank 0 listens on, given the host at which the others will look for it and what that
// resolves to: a literal or "localhost" loopback, or the one address of this host; otherwise all (returned as
// ""), because the name means something else elsewhere (127.0.1.1, several addresses) or does not belong to
// this host (NAT, a Service).
std::vector<std::string> listen_addresses(const std::string& host, const std::vector<SocketAddress>& resolved,
                                          const std::vector<Interface>& interfaces);

}  // namespace tutti
