#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "collectives/group/members.h"
#include "collectives/group/world.h"
#include "collectives/run/offloaded_execution.h"
#include "core/fingerprint.h"
#include "transport/driver/driver.h"
#include "transport/mesh/mesh.h"
#include "transport/offload/offload.h"

namespace tutti {

// `Offloading` chooses the library that carries out a call, and holds the libraries' sessions for one
// communicator. Any thread may call it, except where a comment says otherwise.
class Offloading {
 public:
  // Makes a private communicator of the same members, and returns the `HostCalls` that issue collectives over
  // it.
  using FoundHostCalls = std::function<Result<std::unique_ptr<HostCalls>>(Deadline)>;

  Offloading(const Members& members, const World& world, FoundHostCalls found);

  // Returns how many libraries may carry out calls on host memory.
  std::size_t host_libraries() const { return host_libraries_; }
  // Returns the library for a call; null if there is none. All members get the same answer.
  Library* choose(const Fingerprint& call);
  // Returns why there is no library for a call.
  std::string why_none(const Fingerprint& call);
  // Opens the library's session. Blocks until it is open. May be called only once for each library, on a
  // thread that does not drive.
  Status open(Library& library, OffloadPeers& peers);
  // See OffloadPeers. The calling thread must not drive.
  Result<std::unique_ptr<HostCalls>> host_calls(Deadline deadline) const { return found_(deadline); }
  // Returns the members in the order of their ranks.
  std::span<const PeerInfo* const> peers();

  // Aborts the sessions that are open, and those that are being opened. The driving thread calls it, once.
  void abort(const Status& why);
  // Destroys the sessions. No operation may be left. The calling thread must not drive.
  void close();

 private:
  struct Slot {
    Library library;
    std::optional<Status> fits;  // whether the members fit the library; empty until it is known
  };
  std::span<const PeerInfo* const> peers_locked();
  // Returns ok, or why this library cannot carry out the call.
  Status judge(Slot& slot, const Fingerprint& call);
  Status fit(const Offload& offload);

  const Members& members_;
  const Mesh& mesh_;
  Driver& driver_;
  const FoundHostCalls found_;
  std::size_t host_libraries_ = 0;
  std::mutex mutex_;                          // protects `fits` and `peers_`
  std::vector<const PeerInfo*> peers_;        // empty until they are needed
  std::vector<std::unique_ptr<Slot>> slots_;  // in order of preference
  // Only the driving thread uses these.
  bool aborted_ = false;
  Status why_;
};

}  // namespace tutti
