#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include <tutti/deadline.h>
#include <tutti/secret.h>
#include <tutti/status.h>

#include "rendezvous/store/tcp/stream.h"

namespace tutti {

// A `PmiClient` talks to the launcher of this process, for example MPICH's mpiexec. The protocol PMI-1
// consists of lines of text over a socket that the launcher has opened. The launcher keeps texts under
// keys. It also has a fence, which a rank passes once all ranks of the job have reached the fence. The
// client's first line says that the client speaks PMI-1. Launchers that also know PMI-2, such as `srun
// --mpi=pmi2`, then answer in PMI-1.
//
// Once a process has sent anything, it must say goodbye before it ends. Otherwise mpiexec believes that the
// process has crashed, and kills the job. After the goodbye the launcher no longer listens. So a process has
// one client, whose destructor says goodbye when the process exits. After a failed call the ranks cannot
// meet. The destructor then says no goodbye, so that mpiexec ends the job. In a forked child the destructor
// says no goodbye either.
//
// Source: the behaviour of MPICH's hydra (src/pm/hydra) and of Slurm's plugin mpi/pmi2, and P. Balaji et al.,
// "PMI: A Scalable Parallel Process-Management Interface for Extreme-Scale Systems", EuroMPI 2010.
class PmiClient {
 public:
  // The socket stays open. Nothing is sent yet.
  explicit PmiClient(int socket);
  ~PmiClient();
  PmiClient(const PmiClient&) = delete;
  PmiClient& operator=(const PmiClient&) = delete;

  // Begins a sequence of the calls below, and lets them ask `interrupted` repeatedly while they wait. Says
  // hello if this is the first sequence. Fails with `invalid_argument` if another thread is in such a
  // sequence, and otherwise as the calls below do. The sequence lasts as long as `turn`.
  Status begin(std::unique_lock<std::mutex>& turn, std::function<bool()> interrupted, Deadline deadline);

  // The calls below fail with `timeout`, with `aborted`, or with `invalid_argument`, which says why the
  // launcher cannot be used. After a failure, all later calls fail with `invalid_argument`.

  // Puts a value under a key. The value has at most `value_limit()` characters and no spaces. It can be read
  // after the next fence.
  Status put(const std::string& key, std::string_view value, Deadline deadline);
  Result<Secret> get(const std::string& key, Deadline deadline);
  // Waits until all ranks have called this function. Logs a warning if that takes long.
  Status fence(Deadline deadline);
  // Returns how many fences this process has passed. The number is equal on all ranks.
  std::uint64_t fences() const { return fences_; }
  std::size_t value_limit() const { return value_limit_; }

 private:
  Status say_hello(Deadline deadline);
  Secret put_request(std::string_view key, std::string_view value) const;
  // Sends "cmd=" and the request. Returns the launcher's line, or fails if that line is not an `answer`.
  Result<Secret> ask(const Secret& request, std::string_view answer, Deadline deadline);
  Result<Secret> receive_line(Deadline deadline);
  Status fail(const Status& status);

  const int number_;  // the number of the launcher's socket, for errors
  const std::uint32_t born_;
  std::mutex mutex_;
  store_wire::Stream stream_;
  Status status_;
  std::function<bool()> interrupted_;
  bool spoken_ = false;
  std::string space_;  // the name of the job's key space
  std::size_t value_limit_ = 0;
  std::uint64_t fences_ = 0;
};

}  // namespace tutti
