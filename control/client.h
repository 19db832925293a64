#pragma once

#include <cstdint>
#include <vector>

#include <tutti/status.h>

#include "control/plane.h"

namespace tutti {

// A `ControlClient` is a communicator as the control desk knows it, which notifies it of events of the
// control plane. The desk calls everything on the driving thread.
class ControlClient {
 public:
  virtual ~ControlClient() = default;
  virtual std::uint32_t context() const = 0;
  // Returns its members as ranks of the world.
  virtual const std::vector<int>& ranks() const = 0;
  // Makes it fail for a reason that all members have been told, or are being told. `act_on_failure` follows.
  virtual void fail(const Status& why) = 0;
  // Ends the operations in flight, if it has failed. This is never called from within a callback of the mesh.
  virtual void act_on_failure() = 0;
  // A rank has been lost. `fail` was called before.
  virtual void on_loss() = 0;
  // A rank has said goodbye.
  virtual void on_leave() = 0;
  // Another member has sent a note.
  virtual void on_note(const ControlNote& note) = 0;
};

}  // namespace tutti
