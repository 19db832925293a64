#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/group/active_groups.h"
#include "collectives/group/copiers.h"
#include "collectives/group/host_memory.h"
#include "collectives/group/operation.h"
#include "collectives/schedule/selector.h"
#include "collectives/schedule/topology.h"
#include "control/desk.h"
#include "transport/driver/driver.h"
#include "transport/mesh/context_table.h"
#include "transport/mesh/mesh.h"
#include "transport/offload/offload.h"

namespace tutti {

// `ContextNumbers` assigns the numbers that distinguish the messages of communicators. Each process uses a
// number only once, and the members of a new communicator agree on a number that none of them has used.
class ContextNumbers {
 public:
  // Proposes a number that this process has not used yet.
  std::uint32_t propose();
  // Returns the lowest number that is higher than all numbers that this process has used.
  std::uint32_t above_all();
  // Reserves `context` permanently. Returns false if this process has used it already.
  bool take(std::uint32_t context);

 private:
  std::mutex mutex_;
  std::uint32_t next_ = 1;
  ContextRanges taken_;
};

class DebugServer;
class Group;
class Recorder;

// `World` is the state that all communicators of one `init` share. It lives until the last of these
// communicators is destroyed.
struct World {
  World(std::shared_ptr<Engine> shared_engine, std::unique_ptr<Mesh> started_mesh,
        Selector algorithm_selector, std::chrono::nanoseconds operation_timeout);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::shared_ptr<Engine> engine;
  std::unique_ptr<Mesh> mesh;
  ControlDesk desk;
  ActiveGroups active;
  Selector selector;  // changes only in `init`, when the ranks have agreed on costs
  Topology topology;
  std::chrono::nanoseconds default_timeout;
  // The ranks of a new world have this long to set up shared memory. If that is not enough, they exchange
  // messages instead.
  static constexpr std::chrono::nanoseconds usual_sharing_limit = std::chrono::seconds(10);
  std::chrono::nanoseconds sharing_limit = usual_sharing_limit;
  // When a world ends, it waits at most this long for its goodbyes to be sent.
  static constexpr std::chrono::nanoseconds usual_goodbye_limit = std::chrono::seconds(2);
  std::chrono::nanoseconds goodbye_limit = usual_goodbye_limit;
  ContextNumbers contexts;
  // This is the size in bytes of each rank's window in communicators whose ranks share memory; 0 if ranks
  // must not share memory. Both this size and `shared_room` must be equal on all ranks.
  std::uint64_t window_bytes = 0;
  // On each host, the communicators after the first may share this many bytes in total.
  std::uint64_t shared_room = std::uint64_t{256} << 20;
  HostMemory host_memory{desk};
  // These libraries carry out whole collectives. They are in order of preference, which is the same on all
  // ranks. The list changes only while there is no communicator.
  std::vector<std::unique_ptr<Offload>> offloads;
  Copiers copiers{engine->driver, offloads};
  // Makes a private communicator of the members of `group` (`OffloadPeers::host_calls`).
  Result<std::unique_ptr<HostCalls>> (*found_host_calls)(Group& group, Deadline deadline) = nullptr;
  // Returns the size in bytes of a board's window. A window consists of whole cache lines, so every rank's
  // window is aligned for any type of element.
  std::uint64_t board_window() const;
  // Returns the size in bytes of a range with a board for `members` ranks.
  std::uint64_t range_bytes(std::size_t members) const;
  // If this is set when a communicator is created, all calls on that communicator belong to this composite
  // call.
  Composite part_of = Composite::none;
  // This is false if ranks may have to share a processor, or if threads must not spin. Otherwise it pays to
  // poll for longer.
  bool patient = true;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<DebugServer> debug_server;  // null: this rank has none
};

// Makes the communicator of all ranks of a world whose mesh has been started. Blocks until the ranks share
// memory, or it is known that they cannot.
Communicator create_communicator(const std::shared_ptr<World>& world);

// Returns the world of a communicator. Its selector's costs are those on which all ranks have agreed.
const World& world_of(const Communicator& communicator);

}  // namespace tutti
