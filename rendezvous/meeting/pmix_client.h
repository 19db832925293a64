#pragma once

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

#include "rendezvous/meeting/detached_call.h"
#include "rendezvous/meeting/pmix_api.h"

namespace tutti {

// A `PmixClient` uses the PMIx library to talk to the launcher that has started this process, such as Open
// MPI's mpirun or Slurm's srun. The launcher keeps texts that a rank puts under keys. It also has a fence,
// which hands these texts to the other ranks. A rank can also get a text without the fence. But that takes
// two seconds with some launchers, and does not work in some steps of Slurm.
//
// A process must say goodbye to PMIx before it ends (PMIx_Finalize). Otherwise mpirun believes that the
// process has crashed, and kills the job. Some launchers do not let a process come back after its goodbye. So
// a process has one client, whose destructor says goodbye when the process exits. If the program uses MPI,
// too, PMIx counts both users, and says goodbye only after both have said goodbye. After a failed `begin`
// or `put` the ranks cannot meet. The destructor then says no goodbye, so that mpirun ends the job. It also
// says no goodbye while a call of PMIx has not returned, and in a forked child.
//
// Source: the PMIx standard, version 4.1, and OpenPMIx.
class PmixClient {
 public:
  // `libraries` are the names under which to look for PMIx. `rank` is the rank of this process
  // according to the launcher's variables. Nothing is loaded yet.
  PmixClient(std::vector<std::string> libraries, int rank);
  ~PmixClient();
  PmixClient(const PmixClient&) = delete;
  PmixClient& operator=(const PmixClient&) = delete;

  // Begins a sequence of the calls below, and lets them ask `interrupted` repeatedly while they wait. Loads
  // PMIx and says hello if this is the first sequence. Fails with `timeout`, with `aborted`, or with
  // `invalid_argument` if another thread is in such a sequence, or if PMIx cannot be used. The sequence lasts
  // as long as `turn`.
  Status begin(std::unique_lock<std::mutex>& turn, std::function<bool()> interrupted, Deadline deadline);

  // Lets the other ranks get the text. A key must not be put twice, since PMIx may keep copies of earlier
  // texts. Fails as `begin` does. After a failure all later calls fail with `invalid_argument`.
  Status put(const std::string& key, const Secret& text, Deadline deadline);
  // Passes fences, one after the other, until this process has passed `count` fences since its start. All
  // ranks must pass the same number of fences. Fails with `timeout` at the limit, and with `aborted` if
  // interrupted. In both cases the next call continues to wait for the fence. Logs a warning if the fence
  // takes long.
  Status pass_fences(std::uint64_t count, Deadline limit);
  // Returns the text that rank 0 has put under the key. Fails with `unreachable` if there is no such text by
  // the deadline. With some launchers it fails earlier, since they answer at once. Fails with `aborted` if
  // interrupted.
  Result<Secret> get(const std::string& key, Deadline deadline);

  // `Sessions` describes the sessions that this process has published (rank 0) or read (the
  // others).
  struct Sessions {
    std::uint64_t count = 0;
    Secret last;
  };
  // Only a sequence of calls may use it.
  Sessions& sessions() { return sessions_; }

 private:
  // `Request` is a call of PMIx_Get that has not returned yet.
  struct Request {
    std::string key;
    std::shared_ptr<pmix::Value*> value;
    DetachedCall call;
  };

  Status say_hello(Deadline deadline);
  Status call(const char* function, std::function<pmix::Outcome()> work, Deadline deadline);
  Request ask_for(const std::string& key) const;
  Status fail(const Status& status);

  const std::vector<std::string> libraries_;
  const int rank_;
  const std::uint32_t born_;
  std::mutex mutex_;
  Status status_;
  std::function<bool()> interrupted_;
  bool spoken_ = false;
  pmix::Api api_{};
  std::shared_ptr<pmix::Process> self_ = std::make_shared<pmix::Process>();
  std::optional<Request> request_;
  std::optional<DetachedCall> fence_;  // the fence that this process is passing
  std::uint64_t fences_passed_ = 0;
  Sessions sessions_;
};

}  // namespace tutti
