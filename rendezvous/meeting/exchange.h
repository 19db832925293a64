#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/store.h>

#include "rendezvous/meeting/introduction.h"

namespace tutti {

struct ExchangeOptions {
  // The store is served by rank 0 for this one meeting. Then rank 0 returns only after everybody has the
  // table (it may stop serving at once), and the table stays, so that whoever comes too late can tell.
  // Otherwise the last rank to leave removes all keys but the counter `present`, and the same store and keys
  // serve the next meeting; if ranks die, the store does once all others have left. One that does not know
  // who is connected keeps them.
  bool single_use = false;
  // Called by rank 0 about ten times a second while it waits for ranks.
  std::function<void()> while_waiting = {};
  // Where the ranks meet, for errors: "tcp://a:29500".
  std::string place = {};
  // This rank's addresses, once it is known at the store; empty: those that `self` says. If it fails, this
  // rank cannot take part, and all ranks fail with it.
  std::function<Result<std::map<std::string, std::string>>()> addresses = {};
  // What all ranks have to do before they leave the store. If it fails on one, all that are still at it fail
  // with the first cause.
  std::function<Status(const std::vector<PeerInfo>&)> connect = {};
  // Asked some times a second while this rank waits for others: true ends the meeting for all ranks, with
  // `aborted` naming this one.
  std::function<bool()> interrupted = {};
};

// Every rank says who it is and learns who the others are. The keys:
//   present  how many ranks are between entering and leaving
//   session  the Introduction of the first to come: what all others have to agree with
//   rank/<r> the Introduction of rank r
//   table    what rank 0 made of them; or why it came to nothing, by whoever noticed, so that all ranks fail
//            at once with the same words
//   told     how many ranks know of a failure
//   done     "1": all have left (single_use); or why ranks that had met did not get further, by whoever
//            noticed first
// Each rank makes a constant number of requests; only rank 0 reads all. A rank whose connection to the store
// ends has left a will there (Store::set_will): the failure that names it, for all who wait for `table` or
// `done`.
//
// Fails with `mismatch` for ranks that are taken twice, different world sizes, settings or versions, naming
// both sides; `timeout`, naming the ranks that have not come; `peer_lost`, naming a rank that has died, or no
// rank: the store is gone; `unreachable`, with single_use: the meeting in this store is over and it was
// without us. May be repeated with the same `self`.
Result<std::vector<PeerInfo>> exchange(Store& store, const Introduction& self, const ExchangeOptions& options,
                                       Deadline deadline);

}  // namespace tutti
