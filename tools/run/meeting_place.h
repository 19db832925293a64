#pragma once

#include <memory>
#include <string>

#include <tutti/status.h>
#include <tutti/store_server.h>

#include "rendezvous/launch/environment.h"

namespace tutti::tools {

// A `MeetingPlace` is where the ranks of a job find each other: a store that this process serves, and a port
// for a store that a program may serve itself. It exists as long as the job.
struct MeetingPlace {
  std::unique_ptr<tcp::StoreServer> store;
  std::string address;  // a literal address of this host, which belongs to both ports
  int master_port = 0;
};

// Serves the store on `address`, and finds a free port for `master_port`. The variables of the job,
// `environment`, decide how the store is protected: in the same way as the ranks' own connections.
Result<MeetingPlace> open_meeting_place(const Environment& environment, const std::string& address);

}  // namespace tutti::tools
