#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "transport/peer.h"

namespace tutti {

// `ExchangeOptions` say where and how the ranks of an `exchange` meet.
struct ExchangeOptions {
  // If this is true, rank 0 serves the store for this one meeting. On rank 0 `exchange` returns only after
  // all ranks have the table, and rank 0 may then stop serving at once. The key `table` (the Introductions of
  // all ranks, see exchange.h) is not deleted. So a late rank that still reaches the store learns that the
  // meeting has ended. If this is false, the last rank to leave removes all keys except the counter
  // `present`, so that the next meeting can use the same store and keys. If ranks die, the store itself
  // removes the keys once all other ranks have left. A store that does not track connections cannot do that,
  // and keeps the keys.
  bool single_use = false;
  // Called by rank 0 several times a second while it waits for ranks.
  std::function<void()> while_waiting = {};
  // The place where the ranks meet, such as "tcp://a:29500". Errors name it.
  std::string place = {};
  // Returns this rank's addresses. Called as soon as the store knows this rank. Without this function,
  // `exchange` uses the addresses in its argument `self`. If the function fails, this rank cannot take part,
  // and all ranks fail with the same error.
  std::function<Result<std::map<std::string, std::string>>()> addresses = {};
  // Called on rank 0 with all ranks, before the others learn of each other. If it fails, all ranks fail with
  // the same error.
  std::function<Status(const std::vector<PeerInfo>&)> approve = {};
  // Called on every rank after the ranks have met, and before the rank leaves the store. If the function
  // fails on one rank, all ranks that are still in the meeting fail with the first cause.
  std::function<Status(const std::vector<PeerInfo>&)> connect = {};
  // Called a few times a second while this rank waits for others. If it returns true, the meeting fails on
  // all ranks with `aborted`, which names this rank.
  std::function<bool()> interrupted = {};
};

}  // namespace tutti
