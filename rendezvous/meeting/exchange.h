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
  // Rank 0 serves the store for this one meeting. Then rank 0 returns only after all ranks have the table (it
  // may stop serving at once), and the table stays, so that a rank that comes too late learns of it.
  // Otherwise the last rank to leave removes all keys but the counter `present`, and the same store and keys
  // serve the next meeting. If ranks die, the store removes the keys once all others have left; a store that
  // does not know who is connected keeps them.
  bool single_use = false;
  // Called by rank 0 about ten times a second while it waits for ranks.
  std::function<void()> while_waiting = {};
  // The place where the ranks meet, for errors: "tcp://a:29500".
  std::string place = {};
  // Called once this rank is known at the store; returns its addresses. Empty: `self` has them. If the call
  // fails, this rank cannot take part, and all ranks fail with it.
  std::function<Result<std::map<std::string, std::string>>()> addresses = {};
  // Called on all ranks before they leave the store. If the call fails on one rank, all that are still at it
  // fail with the first cause.
  std::function<Status(const std::vector<PeerInfo>&)> connect = {};
  // Asked some times a second while this rank waits for others or for the store; a user's store is asked
  // between its requests only. True ends the meeting for all ranks, with `aborted` naming this one.
  std::function<bool()> interrupted = {};
};

// Every rank says who it is and learns who the others are. The keys:
//   present  how many ranks are between entering and leaving
//   session  the Introduction of the first to come: what all others have to agree with
//   rank/<r> the Introduction of rank r
//   table    rank 0's table of them; or a failure, published by the rank that noticed it, so that all ranks
//            fail at once with the same words
//   told     how many ranks know of a failure
//   done     "1": all have left (single_use); or why ranks that had met did not get further, published by the
//            first rank that noticed
// Each rank makes a constant number of requests; only rank 0 reads all. Each rank leaves a will at the store
// (Store::set_will): if its connection ends, those who wait for `table` or `done` read the failure that names
// it.
//
// Fails with `mismatch` for ranks that are taken twice, different world sizes, settings or versions, naming
// both sides; `timeout`, naming the ranks that have not come; `peer_lost`, naming a rank that has died, or no
// rank: the store is gone; `unreachable`, with single_use: the meeting in this store is over, and this rank
// was not in it. May be repeated with the same `self`.
Result<std::vector<PeerInfo>> exchange(Store& store, const Introduction& self, const ExchangeOptions& options,
                                       Deadline deadline);

}  // namespace tutti
