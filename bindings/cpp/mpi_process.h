#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/secret.h>
#include <tutti/status.h>

#include "rendezvous/meeting/session_text.h"
#include "transport/mpi/library.h"
#include "transport/mpi/messenger.h"
#include "transport/mpi/search.h"

namespace tutti {

// An `MpiProcess` is this process's part in MPI. It loads MPI, and initializes it unless the program has done
// so. If it has initialized MPI, it also finalizes MPI when the process exits, unless the program has done
// so. Without MPI_Finalize, the launcher would conclude that the process has crashed. `MpiProcess` uses its
// own copy of MPI_COMM_WORLD, so its messages cannot be mixed up with the program's.
//
// A process has one object of this class, which is never destroyed, because MPI may still write into its
// memory. After a failed call, MPI is not called again, and is not finalized: MPI_Finalize would wait for
// ranks that may be missing. The same holds if the messenger has failed, or a peer of it is lost. A forked
// child does not finalize MPI either.
class MpiProcess {
 public:
  static MpiProcess& instance();

  // Begins a sequence of the calls below, which may ask `interrupted` repeatedly while they wait. `library`
  // is the file that the user has chosen, or empty. All ranks must call `begin`; the first call blocks until
  // they do. The sequence lasts as long as `turn`. Fails with one of these codes:
  // - `timeout`: the other ranks have not called `begin` by the deadline.
  // - `aborted`: `interrupted` has returned true.
  // - `unsupported`: no library can be used.
  // - `resource_exhausted`: no thread can be started, or no exit handler can be registered.
  // - `mismatch`: the library and the launcher belong to different MPIs.
  // - `invalid_argument`: MPI is finalized or has failed, this process is a forked child, MPI allows no call
  //   by this thread, or another thread is in such a sequence.
  Status begin(std::unique_lock<std::mutex>& turn, const std::string& library,
               std::function<bool()> interrupted, Deadline deadline);
  int rank() const { return rank_; }
  int size() const { return size_; }
  // Returns what carries messages through MPI. Fails with `unsupported` if `begin` was never called, and with
  // `invalid_argument` if MPI allows calls by one thread only. Any thread may call it, except during `begin`.
  Result<mpi::Messenger*> messenger();

  // Starts to hand rank 0's text to all ranks. All ranks must call it. The text is empty on the other ranks.
  Status start_broadcast(const Secret& text);
  // Lets the broadcast progress, and returns whether this rank has completed it.
  Result<bool> progress();
  // Waits until this rank has completed the broadcast, and returns the text.
  Result<Secret> finish_broadcast(Deadline deadline);

 private:
  MpiProcess();
  Status load(const std::string& chosen);
  Status initialize(Deadline deadline);
  Status check_thread() const;
  Status check_launcher() const;
  Status find_place();
  Status copy_world(Deadline deadline);
  Status agree_on_world(Deadline deadline);
  Status wait(const std::string& call, Deadline deadline);
  Status fail(const Status& status);
  void finalize();

  const std::uint32_t born_;  // the `fork_generation` of this process
  std::mutex mutex_;
  std::function<bool()> interrupted_;
  std::optional<mpi::Launcher> launcher_;
  std::unique_ptr<mpi::Library> library_;
  Status status_;
  int rank_ = 0, size_ = 1;
  bool has_copy_ = false;
  std::optional<mpi::Messenger> messenger_;
  mpi::Handle communicator_, request_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(max_session_bytes);
};

}  // namespace tutti
