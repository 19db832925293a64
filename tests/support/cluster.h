#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/group/world.h"

namespace tutti::test {

// Returns every transport that can connect the ranks of a `Cluster`. ("verbs" is left out if the build found
// no headers of libibverbs.)
const std::vector<std::string>& all_transports();

// Returns the transports of `all_transports` that write into their peers' memory (docs/seams/grants.md).
const std::vector<std::string>& writing_transports();

// Returns all values of `ClusterOptions::transport`, for tests that run with each of them.
const std::vector<std::string>& all_connections();

struct ClusterOptions {
  // One of `all_connections`. "shared" is inproc with shared memory, and "late" is inproc in a
  // `LateTransport`. "verbs" uses the devices of a `TestedLibrary`. "offload" is inproc with a
  // `ReferenceOffload` that accepts host memory. "staged" is inproc with `mirrored_staged_offloads`.
  // The constructor of `Cluster` opens the sessions of these offloads.
  std::string transport = "inproc";
  MessageLimits limits = {};
  std::string algorithms = {};  // as in TUTTI_ALGORITHM
  std::chrono::nanoseconds timeout = std::chrono::seconds(120);
  std::uint64_t window_bytes = 16 * 1024;  // for shared memory; the small size causes many rounds
  std::uint64_t shared_room = std::uint64_t{64} << 20;  // shared memory for all communicators after the first
  // Takes a rank's own transport, and returns the transport that the rank uses instead. With an
  // empty function, the rank uses its own transport.
  std::function<std::unique_ptr<Transport>(int rank, std::unique_ptr<Transport>)> decorate = {};
  // Makes the offloads of a rank. An empty function means no offloads.
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
  ~Cluster();  // destroys the communicators in parallel, like separate processes
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  int size() const { return static_cast<int>(communicators_.size()); }
  Communicator& communicator(int rank) { return communicators_[static_cast<std::size_t>(rank)]; }
  // Calls `body` on every rank's thread and waits for all. An exception on a rank makes the test
  // fail.
  void run(const std::function<void(Communicator&)>& body);

 private:
  std::vector<Communicator> communicators_;
};

}  // namespace tutti::test
