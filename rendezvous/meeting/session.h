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
#include "rendezvous/meeting/announcer.h"

namespace tutti {

// `SessionOptions` are the options of `serve_or_connect`. A session is announced if an `Announcer` tells the
// ranks where its store is.
struct SessionOptions {
  std::string bind_address;                     // an IP address; if empty, derived from where the ranks meet
  std::string advertise_address;                // is announced in place of the bound address
  std::uint16_t first_port = 0, last_port = 0;  // announced sessions: range of the store's port; 0 for any
  InterfaceFilter interfaces;                   // announced sessions: where to listen besides loopback
  std::string pmix_library = {};                // the file of PMIx's library; if empty, it is searched for
  // Makes the announcer of ranks that meet through MPI. The function may be empty if the ranks meet
  // elsewhere.
  std::function<std::unique_ptr<Announcer>()> mpi_announcer = {};
  security::Settings security = {};  // an announced session adds its own token
  // Called repeatedly during the search for the store. If it returns true, the search ends with `aborted`.
  std::function<bool()> interrupted = {};
};

// `Session` is the store of one meeting, and what rank 0 needs to serve it. On destruction the server stops
// and the session is withdrawn. Destroy the session only after `exchange`. Otherwise the other ranks lose the
// store.
class Session {
 public:
  Session();
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;
  ~Session();

  std::shared_ptr<Store> store;
  // This is true if the store exists for this meeting only; see ExchangeOptions.
  bool single_use = false;
  // The credentials prove to the others that this process belongs to the job. They are null if the
  // job asks for no proof.
  security::SharedCredentials credentials;
  // `route` is this host's address on the route to the store. The address shows which interface reaches the
  // other ranks. It is missing if it is not known, as on a rank 0 that listens on several addresses. It is
  // also missing if the address is loopback although the store's host was not given as loopback (Debian's
  // 127.0.1.1).
  std::optional<SocketAddress> route;

  // This text is for errors. It says why the others may not find the store that this rank serves.
  // It is empty if there is no reason for doubt, or if this rank serves no store.
  std::string doubt;

  // Returns why the store refused the last tutti process that wanted to meet here. The text is
  // empty if the store has refused no process, or if another process serves the store.
  std::string last_refusal() const;
  // Announces the session again if it has vanished. Rank 0 calls this while it waits.
  void keep_alive() const;

 private:
  friend class SessionMaker;
  struct Serving;
  std::unique_ptr<Serving> serving_;
};

// Serves the store on rank 0, unless another process serves it, and connects each rank to it. Retries until
// the deadline. A world of one rank gets a store in memory.
Result<Session> serve_or_connect(const Launch& launch, const SessionOptions& options, Deadline deadline);

// Returns the addresses that rank 0 listens on. The other ranks look for rank 0 at `host`, which
// resolves to `resolved` on this host. There are three cases. If `host` is a name such as "localhost"
// or a loopback literal, returns one loopback address. If `host` resolves to a single address, which
// belongs to this host, returns that address. Otherwise returns "", which stands for all addresses.
// In that case the name may mean something else on other hosts (127.0.1.1, several addresses), or
// may not belong to this host (NAT, a Service).
std::vector<std::string> listen_addresses(const std::string& host, const std::vector<SocketAddress>& resolved,
                                          const std::vector<Interface>& interfaces);

}  // namespace tutti
