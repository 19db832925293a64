#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "transport/peer.h"

namespace tutti {

// `ExchangeOptions` say where and how ranks meet by `exchange`.
struct ExchangeOptions {
  // Rank 0 serves the store for this one meeting. Then rank 0 returns only after all ranks have the table (it
  // may stop serving at once), and the table stays, so that a late rank learns that the meeting is over.
  // Otherwise the last rank to leave removes all keys but the counter `present`, and the same store and keys
  // serve the next meeting. If ranks die, the store removes the keys once all others have left; a store that
  // does not track connections keeps them.
  bool single_use = false;
  // Called by rank 0 about ten times a second while it waits for ranks.
  std::function<void()> while_waiting = {};
  // The place where the ranks meet, for errors: "tcp://a:29500".
  std::string place = {};
  // This rank's addresses, once it is known at the store; empty: those in `self`. If it fails, this rank
  // cannot take part, and all ranks fail with it.
  std::function<Result<std::map<std::string, std::string>>()> addresses = {};
  // What all ranks have to do before they leave the store. If it fails on one, all that are still doing it
  // fail with the first cause.
  std::function<Status(const std::vector<PeerInfo>&)> connect = {};
  // Asked some times a second while this rank waits for others: true ends the meeting for all ranks, with
  // `aborted` naming this one.
  std::function<bool()> interrupted = {};
};

}  // namespace tutti
