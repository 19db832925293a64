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

// `StoreLink` is the connection of a `StoreClient` to its server. It carries one request at a time. The
// server's promises are what the server will do once this client has gone, as requested by `hold` and
// `set_will`. A request that is given up half-way breaks the connection. The next request then makes a new
// connection, and first renews the promises there.
class StoreLink {
 public:
  // Makes a link that uses `stream`, a connection to `address` on which nothing has been sent yet.
  // Fails with `unauthenticated` if the store refuses this client, and with `mismatch` if it speaks
  // another version of the protocol. Fails with `aborted` if this process is interrupted, and with
  // `unreachable` if no store answers.
  static Result<std::unique_ptr<StoreLink>> open(store_wire::Stream stream, const SocketAddress& address,
                                                 Deadline deadline, const StoreClientOptions& options);

  // Sends a request, and returns the response. Fails with `timeout` if the server does not answer,
  // or answers that keys are missing. Fails with `aborted` if this process is interrupted before
  // the server answers, and with `peer_lost` if the server is gone.
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
  // before that request. The request itself may have cancelled the last promise.
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
  // A broken connection with promises stays open until a new connection has the same promises. Otherwise the
  // server would delete the held keys and execute the will.
  store_wire::Stream abandoned_;
  wire::StoreRequest hold_;  // without keys if nothing is held
  wire::StoreRequest will_;  // without keys if there is no will
  bool lost_ = false;
};

// Returns the time at which a client gives up on a server that does not answer at all. This time is later
// than `deadline`. A healthy server answers at `deadline` which keys are missing, and the answer takes a
// moment to arrive.
Deadline answer_limit(Deadline deadline);

}  // namespace tutti::tcp
