#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <tutti/c.h>

#include "bindings/torch/completions.h"
#include "bindings/torch/fork.h"

namespace tutti_torch {

// A `World` consists of the ranks that met in one call of `meet`. It has one engine with its
// threads and connections, and all process groups made from the world share this engine. The world
// makes groups from a separate communicator that no group uses. So it can make new groups even
// after a group has failed.
class World {
 public:
  // Takes the communicator of all ranks that have met.
  explicit World(tutti_comm* all) : maker_(all) {}
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // These functions set and return the world of this process's default group. `of_default_group` returns null
  // if there is none.
  static void serve_as_default(const std::shared_ptr<World>& world);
  static std::shared_ptr<World> of_default_group();
  // Forgets the world of the default group in a forked child, since this world belongs to the parent.
  static void forget_default();

  // Returns a communicator of these ranks of the world. Exactly these ranks must call this, with
  // equal lists. Returns null if the world has lost a rank. The other callers then also get null,
  // or a timeout. Throws if a rank does not call in time, or on Ctrl-C. The caller must not hold
  // the GIL.
  tutti_comm* make_group(const std::vector<int>& ranks, std::chrono::milliseconds timeout);

  const std::shared_ptr<Completions>& completions() const { return completions_; }

 private:
  const Birth birth_;
  tutti_comm* const maker_;
  const std::shared_ptr<Completions> completions_ = std::make_shared<Completions>();
};

// A `Place` says in which world a group is, and which of the world's ranks are its members.
struct Place {
  std::shared_ptr<World> world;
  std::vector<int> ranks;
};

}  // namespace tutti_torch
