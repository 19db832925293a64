#pragma once

#include <vector>

#include <tutti/deadline.h>
#include <tutti/store.h>

#include "rendezvous/meeting/exchange_options.h"
#include "rendezvous/meeting/introduction.h"

namespace tutti {

// Every rank says who it is and learns who the others are. The keys:
//   present  the number of ranks that have entered and not left
//   session  the Introduction of the first rank, with which all others have to agree
//   rank/<r> the Introduction of rank r
//   table    rank 0's table of them; or a failure, published by the rank that noticed it, so that all ranks
//            fail at once with the same words
//   told     the number of ranks that know of a failure
//   done     "1": all have left (single_use); or why ranks that had met did not get further, published by the
//            first rank that noticed
// Each rank makes a constant number of requests; only rank 0 reads all. Each rank leaves a will at the store
// (Store::set_will): if its connection ends, the ranks that wait for `table` or `done` read the failure that
// names it.
//
// Fails with `mismatch` for duplicate ranks, different world sizes, settings or versions, naming both sides;
// `timeout`, naming the ranks that have not arrived; `peer_lost`, naming a rank that has died, or no rank:
// the store is gone; `unreachable`, with single_use: the meeting in this store is over, and this rank was not
// in it. It may be called again with the same `self`.
Result<std::vector<PeerInfo>> exchange(Store& store, const Introduction& self, const ExchangeOptions& options,
                                       Deadline deadline);

}  // namespace tutti
