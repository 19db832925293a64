#include "collectives/group/world.h"

#include <algorithm>
#include <utility>

#include "collectives/record/debug_socket.h"
#include "collectives/record/recorder.h"
#include "collectives/run/board.h"

namespace tutti {

namespace {

Topology topology_of(const Mesh& mesh) {
  std::vector<PeerInfo> peers;
  for (int rank = 0; rank < mesh.size(); ++rank) peers.push_back(mesh.peer(rank));
  return Topology(hosts_of(peers));
}

}  // namespace

std::uint32_t ContextNumbers::propose() {
  const std::lock_guard lock(mutex_);
  while (taken_.contains(next_)) ++next_;
  return next_++;
}

std::uint32_t ContextNumbers::above_all() {
  const std::lock_guard lock(mutex_);
  return std::max(next_, taken_.last() + 1);
}

bool ContextNumbers::take(std::uint32_t context) {
  const std::lock_guard lock(mutex_);
  if (taken_.contains(context)) return false;
  taken_.insert(context);
  return true;
}

World::World(std::shared_ptr<Engine> shared_engine, std::unique_ptr<Mesh> started_mesh,
             Selector algorithm_selector, std::chrono::nanoseconds operation_timeout)
    : engine(std::move(shared_engine)),
      mesh(std::move(started_mesh)),
      desk(engine->driver, *mesh),
      active(engine->driver),
      selector(std::move(algorithm_selector)),
      topology(topology_of(*mesh)),
      default_timeout(operation_timeout),
      recorder(std::make_unique<Recorder>(engine->driver, *mesh)) {}

World::~World() {
  debug_server.reset();
  if (engine->driver.forked()) {
    static_cast<void>(recorder.release());  // a thread that does not exist here may have been using it
  } else {
    recorder->stop();
  }
  desk.stop();
  mesh->shutdown(Deadline::after(goodbye_limit));
  copiers.close();
  engine->driver.stop();
  mesh.reset();
}

std::uint64_t World::board_window() const { return Board::whole_lines(window_bytes); }

std::uint64_t World::range_bytes(std::size_t members) const {
  return HostMemory::range_bytes(members, Board::segment_bytes(static_cast<int>(members), board_window()));
}

}  // namespace tutti
