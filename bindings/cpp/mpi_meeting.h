#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <tutti/deadline.h>
#include <tutti/secret.h>
#include <tutti/status.h>

#include "rendezvous/meeting/announcer.h"

namespace tutti {

class MpiProcess;

// An `MpiMeeting` is one meeting of ranks through MPI: one call of `init` with "mpi://". MPI tells each rank
// its number and the world size. Once for each meeting, MPI also hands rank 0's session, a text that says
// where the ranks meet, to the other ranks. All ranks must meet in the same order if they meet more than once
// (docs/mpi.md).
class MpiMeeting {
 public:
  // Begins the meeting. `library` is the file that the user has chosen, or empty. Fails as
  // `MpiProcess::begin` does.
  static Result<std::unique_ptr<MpiMeeting>> begin(const std::string& library,
                                                   const std::function<bool()>& interrupted,
                                                   Deadline deadline);
  int rank() const;
  int size() const;
  // Returns an announcer of this meeting, for one attempt to meet. The meeting must outlive it.
  std::unique_ptr<Announcer> announcer();

 private:
  class MpiAnnouncer;
  explicit MpiMeeting(MpiProcess& process) : process_(process) {}

  MpiProcess& process_;
  std::unique_lock<std::mutex> turn_;
  bool has_started_ = false;  // this rank has started the broadcast of this meeting
  Secret text_;               // the session, once a rank other than rank 0 has received it
};

}  // namespace tutti
