#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include <rendezvous/store/tcp/store.pb.h>
#include <sys/types.h>

#include <tutti/address.h>
#include <tutti/deadline.h>
#include <tutti/status.h>

#include "rendezvous/store/tcp/client_options.h"
#include "rendezvous/store/tcp/stream.h"

namespace tutti::tcp {

// `StoreLink` is the connection of a `StoreClient` to its server. It carries one request at a time. A request
// that is given up half-way breaks the connection. Then the next request first makes a new connection, and
// obtains on it the same promises that this client had from the server. Promises are what the server does for
// `hold` and `set_will`.
class StoreLink {
 public:
  // Makes a link of a new connection to `address`, on which nothing has been sent yet. Fails with
  // `unreachable` if the other side is not a store that this client may use.
  static Result<std::unique_ptr<StoreLink>> open(store_wire::Stream stream, const SocketAddress& address,
                                                 Deadline deadline, const StoreClientOptions& options);

  // Sends a request, and returns the response. Fails with `timeout` if the server says that keys are missing
  // or does not answer, with `aborted` if this process is interrupted while the server does not answer, and
  // with `peer_lost` if the server is gone.
  Result<wire::StoreResponse> call(const wire::StoreRequest& request, Deadline deadline);

  // Returns the server's session nonce, in hex.
  const std::string& nonce() const { return nonce_; }
  const SocketAddress& address() const { return address_; }
  const SocketAddress& local_address() const { return local_address_; }

 private:
  struct Connected {
    store_wire::Stream stream;
    std::string nonce;
  };

  // A `Turn` is the right to use the connection.
  class Turn {
   public:
    Turn(StoreLink& link, Deadline deadline);
    ~Turn();
    bool taken() const { return taken_; }

   private:
    StoreLink& link_;
    bool taken_;
  };

  StoreLink(const SocketAddress& address, const StoreClientOptions& options, Connected connected);

  static Result<Connected> greet(store_wire::Stream stream, const SocketAddress& address,
                                 const StoreClientOptions& options, Deadline deadline);
  Status exchange(const wire::StoreRequest& request, Deadline limit, wire::StoreResponse& response);
  Status reopen(Deadline deadline);
  Status reconnect(Deadline limit);
  // Gives up the connection after a failed request. `promised` says whether the server had made promises
  // before that request, since the request itself may have cancelled the last promise.
  Status give_up(const Status& why, bool promised);
  Status lost(const Status& cause) const;
  Status no_answer() const;
  bool promises() const { return hold_.keys_size() + will_.keys_size() > 0; }

  const SocketAddress address_;
  const StoreClientOptions options_;
  const SocketAddress local_address_;
  const std::string nonce_;
  const pid_t owner_;

  std::mutex mutex_;  // guards `busy_`; the members below belong to the thread that has the turn
  std::condition_variable free_;
  bool busy_ = false;
  store_wire::Stream stream_;
  // A broken connection with promises stays open until a new connection has them too. Otherwise the server
  // would delete the held keys and execute the will.
  store_wire::Stream abandoned_;
  wire::StoreRequest hold_;  // without keys if nothing is held
  wire::StoreRequest will_;  // without keys if there is no will
  bool lost_ = false;
};

// Returns the time at which a client gives up on a server that does not answer at all. It is after
// `deadline`, since at the deadline the server itself ends the wait and says which keys are missing.
Deadline answer_limit(Deadline deadline);

}  // namespace tutti::tcp
