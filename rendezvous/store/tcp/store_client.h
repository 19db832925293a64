#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tutti/address.h>
#include <tutti/store.h>

#include "rendezvous/store/tcp/client_options.h"
#include "rendezvous/store/tcp/stream.h"

namespace tutti::tcp {

// `StoreClient` is the Store at the other end of a TCP connection to a `StoreServer`.
//
// Its calls block, and it has no thread. The connection carries one request at a time, so a call that waits
// for a key blocks calls of other threads on the same client. If that matters, each thread needs its own
// client. Once the connection is lost, every call fails with `peer_lost`. In a forked child, every call fails
// with `unsupported`.
class StoreClient : public Store {
 public:
  // Returns the server's session nonce, in hex. Another server at the same address has another nonce.
  virtual std::string nonce() const = 0;
  // Returns the local address of the connection, which is this host's address on the route to the store.
  virtual SocketAddress local_address() const = 0;
};

// Resolves the name and connects. Repeats both until they succeed. If the deadline passes first, fails with
// `unreachable`. The message then says why the last attempt failed: the name is unknown, there is no
// connection, or the other side is not a store. Fails earlier, with `unauthenticated`, if the store and this
// process have different tokens, or if only one of them has a token.
Result<std::shared_ptr<StoreClient>> connect_store(const std::string& host, std::uint16_t port,
                                                   Deadline deadline, const StoreClientOptions& options = {});

// Makes a single attempt to connect, to one address.
Result<std::shared_ptr<StoreClient>> try_connect_store(const SocketAddress& address, Deadline deadline,
                                                       const StoreClientOptions& options = {});

// Makes a client that uses `stream`, a connection to `address` on which nothing has been sent yet.
Result<std::shared_ptr<StoreClient>> open_store(store_wire::Stream stream, const SocketAddress& address,
                                                Deadline deadline, const StoreClientOptions& options = {});

}  // namespace tutti::tcp
