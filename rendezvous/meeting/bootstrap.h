#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "rendezvous/launch/launch.h"
#include "rendezvous/meeting/exchange.h"
#include "rendezvous/meeting/introduction.h"
#include "rendezvous/meeting/session.h"

namespace tutti {

// `JoinOptions` are the options of `join`.
struct JoinOptions {
  SessionOptions session;
  // This prefix, such as the job's name, separates the meetings in a store that outlives them.
  std::string prefix = "tutti/0";
  std::string wire_digest;  // "NAME=value;" of each setting that must be equal on all ranks
  std::string version;
  std::map<std::string, std::string> offloads = {};  // name -> facts; see PeerInfo
  // Returns the address of each of this rank's transports, by the transport's name. Called once for each
  // attempt to meet, after this rank has connected to the store.
  std::function<Result<std::map<std::string, std::string>>(const Session&)> addresses = {};
  // Called on rank 0 with all ranks, and decides whether they may meet; see ExchangeOptions.
  std::function<Status(const std::vector<PeerInfo>&)> approve = {};
  // Called as soon as the ranks know each other, while they can still ask the store which rank failed first.
  std::function<Status(const std::vector<PeerInfo>&)> connect = {};
};

// `Joined` is the result of `join`.
struct Joined {
  Introduction self;
  std::vector<PeerInfo> peers;  // all ranks, `self` included
  Session session;              // no longer needed; may be destroyed at once
};

// Meets the other ranks of a launch: serves the store or connects to it, and exchanges introductions. If the
// store belongs to a session that has ended or is ending, tries again until the deadline.
Result<Joined> join(const Launch& launch, const JoinOptions& options, Deadline deadline);

}  // namespace tutti
