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

// A `PmixClient` talks to the launcher that has started this process, Open MPI's mpirun or Slurm's srun for
// example, through the library of PMIx. The launcher keeps texts that a rank puts under keys, and has a
// fence, which hands them to the other ranks. A rank can also get a text without the fence, but that takes
// two seconds with some launchers, and does not work in every step of Slurm.
//
// A process must say goodbye to PMIx before it ends (PMIx_Finalize). Otherwise mpirun takes its end for a
// crash and kills the job. Some launchers do not let a process come back after its goodbye. So a process has
// one client, whose destructor says goodbye when the process exits. If the program uses MPI too, PMIx counts
// both users, and says goodbye when the last one does. After a failed call the destructor says nothing, so
// that mpirun ends the job, whose ranks could not meet. In a forked child it says nothing either.
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

  // Lets the other ranks get the text. A key is never put twice, since PMIx may keep copies of what it has
  // seen. Fails as `begin` does; then all later calls fail with `invalid_argument`.
  Status put(const std::string& key, const Secret& text, Deadline deadline);
  // Passes fences until this process has passed `count` of them since its start, one after the other. All
  // ranks must pass equally many. Fails with `timeout` at the limit, and with `aborted` if interrupted; the
  // next call goes on with the fence. Logs a warning if that takes long.
  Status pass_fences(std::uint64_t count, Deadline limit);
  // Returns the text that rank 0 has put under the key. Fails with `unreachable` if there is none by the
  // deadline, and perhaps earlier: some launchers answer at once. Fails with `aborted` if interrupted.
  Result<Secret> get(const std::string& key, Deadline deadline);

  // `Sessions` are those that this process has published (rank 0) or read (the others).
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
  std::optional<DetachedCall> fence_;  // the one that this process is passing
  std::uint64_t fences_passed_ = 0;
  Sessions sessions_;
};

}  // namespace tutti
