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

struct JoinOptions {
  SessionOptions session;
  // Keeps meetings in a store that goes on apart: the name of the job, say.
  std::string prefix = "tutti/0";
  std::string wire_digest;  // "NAME=value;" of each setting that must be equal on all ranks
  std::string version;
  // The addresses of this rank's transports by name, once it is known how the store is reached. Called once
  // for each attempt.
  std::function<Result<std::map<std::string, std::string>>(const Session&)> addresses = {};
  // What the ranks do once they know each other, as long as they can still ask the store who failed first.
  std::function<Status(const std::vector<PeerInfo>&)> connect = {};
};

struct Joined {
  Introduction self;
  std::vector<PeerInfo> peers;  // all ranks, `self` included
  Session session;              // may be dropped at once
};

// The whole way from a launch to knowing everybody: serves or connects, and exchanges. Starts over, until the
// deadline, when the store turns out to belong to a session that is over or ending.
Result<Joined> join(const Launch& launch, const JoinOptions& options, Deadline deadline);

}  // namespace tutti
