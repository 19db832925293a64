#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/group/failure.h"
#include "collectives/group/gate.h"
#include "collectives/group/journal.h"
#include "collectives/group/live_operations.h"
#include "collectives/group/members.h"
#include "collectives/group/shrinking.h"
#include "collectives/group/world.h"

namespace tutti {

// `Survivors` lets the members of a communicator agree on which of them have survived a loss. Each
// call of `shrink` runs one such agreement, and only one runs at a time.
class Survivors {
 public:
  Survivors(std::uint32_t context, const Members& members, World& world, Failure& failure,
            const Journal& journal, LiveOperations& live, Gate& gate);

  // Agrees with the other members on the survivors and on the new communicator's number. If the communicator
  // has not failed yet, this call makes it fail. Throws `Error`. The calling thread must not drive.
  ShrinkNote agree(int min_size);

  // Only the driving thread calls these two functions. `on_note`: the member whose world rank is `origin` has
  // sent a note. `on_loss`: a rank has been lost.
  void on_note(int origin, const ShrinkNote& note);
  void on_loss();

 private:
  void check(int min_size) const;
  std::unique_ptr<Shrinking> begin(int min_size);
  void end(Shrinking& shrinking);
  void leave_behind(const ShrinkNote& decision);

  const std::uint32_t context_;
  const Members& members_;
  World& world_;
  Driver& driver_;
  Failure& failure_;
  const Journal& journal_;
  LiveOperations& live_;
  Gate& gate_;
  Shrinking* under_way_ = nullptr;  // only the driving thread uses it
  std::uint32_t attempts_ = 0;
  std::vector<std::uint32_t> numbers_;  // see Shrinking::numbers
};

}  // namespace tutti
