#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/group/world.h"

namespace tutti::test {

// Returns every transport that can connect the ranks of a `Cluster`.
inline const std::vector<std::string>& all_transports() {
  static const std::vector<std::string> names = {"inproc", "tcp", "shared", "shm", "late"};
  return names;
}

// Returns all values of `ClusterOptions::transport`, for tests that run with each of them.
inline const std::vector<std::string>& all_connections() {
  static const std::vector<std::string> names = {"inproc", "tcp",     "shared", "shm",
                                                 "late",   "offload", "staged"};
  return names;
}

struct ClusterOptions {
  // One of `all_connections`. "shared" is inproc with shared memory, and "late" is inproc in a
  // `LateTransport`. "offload" is inproc with a `ReferenceOffload` that takes host memory; "staged" is inproc
  // with `mirrored_staged_offloads`. The constructor of `Cluster` opens the sessions of these offloads.
  std::string transport = "inproc";
  MessageLimits limits = {};
  std::string algorithms = {};  // as in TUTTI_ALGORITHM
  std::chrono::nanoseconds timeout = std::chrono::seconds(120);
  std::uint64_t window_bytes = 16 * 1024;  // for shared memory; small, so that there are many rounds
  std::uint64_t shared_room = std::uint64_t{64} << 20;  // shared memory for all communicators after the first
  // Takes a rank's own transport, and returns the one that the rank uses instead. If empty, the rank keeps
  // its own.
  std::function<std::unique_ptr<Transport>(int rank, std::unique_ptr<Transport>)> decorate = {};
  // Makes the offloads of a rank. If empty, there are none.
  std::function<std::vector<std::unique_ptr<Offload>>(int rank)> offloads = {};
  bool control = false;                 // the ranks have control connections; `shrink` needs them
  Composite part_of = Composite::none;  // as in `World::part_of`
  DriverOptions driver = {.spin = std::chrono::microseconds(20)};
};

// A `Cluster` is a world of ranks that are threads of this process, each with its own driver, mesh and
// communicator. It differs from real processes only in that the ranks share one address space.
class Cluster {
 public:
  explicit Cluster(int size, ClusterOptions options = {});
  ~Cluster();  // destroys the communicators in parallel, as processes would
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  int size() const { return static_cast<int>(communicators_.size()); }
  Communicator& communicator(int rank) { return communicators_[static_cast<std::size_t>(rank)]; }
  // Calls `body` on every rank's thread and waits for all. An exception on a rank becomes a test failure.
  void run(const std::function<void(Communicator&)>& body);

 private:
  std::vector<Communicator> communicators_;
};

}  // namespace tutti::test
