#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "core/free_delete.h"
#include "transport/mpi/library.h"

namespace tutti::mpi {

// A `Messenger` sends and receives messages over a communicator of MPI that belongs to tutti alone. A process
// has one messenger, and all transports of the process share it. One mutex guards all of its calls of MPI. So
// MPI needs no more than MPI_THREAD_SERIALIZED, and no call can begin once MPI is about to be finalized.
class Messenger {
 public:
  // `world` is a number that the processes of one MPI world have agreed on, and that no other world has.
  // `rank` is the number of this process in the communicator. The library must outlive the messenger.
  Messenger(const Library& library, Handle communicator, std::uint64_t world, int rank);
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  std::uint64_t world() const { return world_; }
  int rank() const { return rank_; }
  // Returns the description of the library.
  std::string describe() const { return library_.describe(); }
  // Returns a tag that no other transport of this process uses, or has used.
  Result<int> take_tag();
  // Returns ok, or why MPI can no longer be called: a call has failed, MPI is finalized, or this process is a
  // forked child.
  Status usable() const;

  // Starts to send or to receive a message of at most INT_MAX bytes. The memory and the request must stay
  // where they are until the request is complete. Once a call of MPI has failed, MPI is not called any more.
  Status send(std::span<const std::byte> bytes, int to, int tag, Handle& request);
  Status receive(std::span<std::byte> memory, int tag, Handle& request);
  // Lets a send progress, and returns whether it is complete.
  Result<bool> has_sent(Handle& request);
  // Lets a receive progress, and returns the size of the message once it has arrived.
  Result<std::optional<std::size_t>> received(Handle& request);
  // Cancels a receive. Returns whether MPI has let go of the memory.
  bool withdraw(Handle& request);

  // From now on, MPI must not be finalized, since a peer is lost. MPI_Finalize might wait for ever.
  void leave_unfinished() { unfinished_.store(true); }
  // Keeps memory that MPI may still use. MPI is not finalized.
  void keep(AlignedBytes memory);
  // Ends all calls of MPI. Returns whether MPI may be finalized.
  bool close();

 private:
  Status enter(std::unique_lock<std::mutex>& lock) const;
  Status check(Outcome outcome, const char* call);

  const Library& library_;
  const Handle communicator_;
  const std::uint64_t world_;
  const int rank_;
  const std::uint32_t born_;  // the `fork_generation` of this process
  mutable std::mutex mutex_;
  Status status_;
  bool closed_ = false;
  int next_tag_ = 0;
  std::vector<AlignedBytes> kept_;
  std::atomic<bool> unfinished_{false};
};

}  // namespace tutti::mpi
