#pragma once

#include <cstdint>
#include <vector>

#include <tutti/status.h>

#include "control/plane.h"

namespace tutti {

// A `ControlClient` is the control desk's view of a communicator. The desk notifies it of events of the
// control plane. All calls are on the driving thread.
class ControlClient {
 public:
  virtual ~ControlClient() = default;
  virtual std::uint32_t context() const = 0;
  // Returns its members as ranks of the world.
  virtual const std::vector<int>& ranks() const = 0;
  // Makes it fail with `why`, which all members know or are about to learn. `act_on_failure` follows.
  virtual void fail(const Status& why) = 0;
  // Ends the operations in flight, if it has failed. It is never called from within a callback of the mesh.
  virtual void act_on_failure() = 0;
  // Reports that a rank has been lost, after a call of `fail`.
  virtual void on_loss() = 0;
  // Reports that a rank has said goodbye.
  virtual void on_leave() = 0;
  // Passes on a note of another member.
  virtual void on_note(const ControlNote& note) = 0;
};

}  // namespace tutti
