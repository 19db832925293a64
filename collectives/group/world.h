#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include <tutti/communicator.h>

#include "collectives/group/operation.h"
#include "collectives/schedule/selector.h"
#include "collectives/schedule/topology.h"
#include "control/desk.h"
#include "transport/driver/driver.h"
#include "transport/mesh/context_table.h"
#include "transport/mesh/mesh.h"

namespace tutti {

// `ContextNumbers` assigns the numbers that distinguish the messages of communicators. A number is used once
// per process, and the members of a new communicator agree on a number that none of them uses.
class ContextNumbers {
 public:
  // Proposes a number that is not used here yet.
  std::uint32_t propose();
  // Returns the first number that is higher than all that were used here.
  std::uint32_t above_all();
  // Reserves `context` permanently; false if it is in use here already.
  bool take(std::uint32_t context);

 private:
  std::mutex mutex_;
  std::uint32_t next_ = 1;
  ContextRanges taken_;
};

class DebugServer;
class Recorder;

// `World` is the state that all communicators of one `init` share. It lives as long as the last of them.
struct World {
  World(std::shared_ptr<Engine> shared_engine, std::unique_ptr<Mesh> started_mesh,
        Selector algorithm_selector, std::chrono::nanoseconds operation_timeout);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::shared_ptr<Engine> engine;
  std::unique_ptr<Mesh> mesh;
  ControlDesk desk;
  Selector selector;  // changes only while there is no communicator
  Topology topology;
  std::chrono::nanoseconds default_timeout;
  // The ranks of a new communicator may take this long to share memory. Then they do without it.
  static constexpr std::chrono::nanoseconds usual_sharing_limit = std::chrono::seconds(10);
  std::chrono::nanoseconds sharing_limit = usual_sharing_limit;
  // A world that ends waits this long for its goodbye to be sent.
  static constexpr std::chrono::nanoseconds usual_goodbye_limit = std::chrono::seconds(2);
  std::chrono::nanoseconds goodbye_limit = usual_goodbye_limit;
  ContextNumbers contexts;
  // The bytes of each rank's window, in each communicator whose ranks share memory; 0 if they do not. It is
  // equal on all ranks.
  std::uint64_t window_bytes = 0;
  // All calls of the communicators that are made now are part of this call.
  Composite part_of = Composite::none;
  // Says that each rank here has a processor to itself.
  bool patient = true;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<DebugServer> debug_server;  // null: this rank answers no questions
};

// Makes the communicator of all ranks of a world whose mesh has been started. It blocks until the ranks share
// memory, if they are to.
Communicator create_communicator(const std::shared_ptr<World>& world);

// Returns the costs by which a communicator's algorithms are chosen. All ranks have agreed on them.
const CostModel& agreed_costs(const Communicator& communicator);

}  // namespace tutti
