#pragma once

#include <cstdint>
#include <vector>

#include <tutti/status.h>

#include "control/plane.h"

namespace tutti {

// `ControlClient` is a communicator as the control desk sees it: it receives the events of the control plane.
// All functions are called on the driving thread.
class ControlClient {
 public:
  virtual ~ControlClient() = default;
  virtual std::uint32_t context() const = 0;
  // The ranks of the world that are its members.
  virtual const std::vector<int>& ranks() const = 0;
  // Makes it fail, for a reason that all members have been told, or are being told. `act_on_failure` follows.
  virtual void fail(const Status& why) = 0;
  // Ends the operations in flight, if it has failed. Not called inside a callback of the mesh.
  virtual void act_on_failure() = 0;
  // A rank has been lost, after `fail`.
  virtual void on_loss() = 0;
  // A rank has said goodbye.
  virtual void on_leave() = 0;
  // Another member has written a note.
  virtual void on_note(const ControlNote& note) = 0;
};

}  // namespace tutti
