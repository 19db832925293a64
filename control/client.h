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
  // Returns the communicator's members, as ranks of the world.
  virtual const std::vector<int>& ranks() const = 0;
  // Makes the communicator fail with `why`. All members know the failure, or are about to learn of it. If the
  // communicator may have operations in flight, the desk calls `act_on_failure` afterwards.
  virtual void fail(const Status& why) = 0;
  // Ends the operations in flight, if the communicator has failed. The desk never calls this function from
  // within a callback of the mesh.
  virtual void act_on_failure() = 0;
  // Reports that a rank has been lost. The desk has already called `fail`.
  virtual void on_loss() = 0;
  // Reports that a rank has said goodbye.
  virtual void on_leave() = 0;
  // Delivers a note that another member has sent.
  virtual void on_note(const ControlNote& note) = 0;
};

}  // namespace tutti
