#pragma once

#include <vector>

#include <tutti/deadline.h>
#include <tutti/store.h>

#include "rendezvous/meeting/exchange_options.h"
#include "rendezvous/meeting/introduction.h"

namespace tutti {

// `exchange` tells the other ranks who this rank is, and returns who they are. It uses these keys:
//   present  the number of ranks that have entered and have not left
//   session  the Introduction of the first rank, with which all others must be compatible
//   rank/<r> the Introduction of rank r
//   table    rank 0's table of all Introductions; or a failure, published by the rank that noticed it, so
//            that all ranks fail at once with the same words
//   told     the number of ranks that know of the failure in `table`
//   done     "1" once all have left (single_use); or the failure that stopped ranks after they had met,
//            published by the first rank that noticed it
// Only rank 0 reads all Introductions; every other rank makes a constant number of requests. Each
// rank leaves a will at the store (Store::set_will). If the rank's connection to the store ends,
// the ranks that wait for `table` or `done` read a failure that names this rank.
//
// `exchange` fails with
//   mismatch     for duplicate ranks, or different world sizes, settings or versions; it names both sides
//   timeout      if ranks have not arrived; it names them
//   the error of `approve`
//   peer_lost    if a rank has died, or if the store is gone; it names the rank that died
//   unreachable  (single_use) if the meeting in this store has ended and this rank was not in it
// It may be called again with the same `self`.
Result<std::vector<PeerInfo>> exchange(Store& store, const Introduction& self, const ExchangeOptions& options,
                                       Deadline deadline);

}  // namespace tutti
