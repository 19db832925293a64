#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <tutti/status.h>

#include "transport/driver/driver.h"
#include "transport/offload/stream_link.h"

namespace tutti {

// A `CopyJob` is one copy between the memory of a device and the memory of the host. The caller owns it, and
// it must not move until `done` has been called.
struct CopyJob {
  void* device = nullptr;  // the device's address of its memory
  std::byte* host = nullptr;
  std::size_t bytes = 0;  // at least 1
  bool to_device = false;
  StreamLink* link = nullptr;  // the copy begins when this link permits it
  // Called once, when nothing touches either memory any more. If the status is ok, everything was copied.
  void (*done)(CopyJob& job, const Status& status) = nullptr;

  // The copier uses these while the copy is under way.
  std::size_t begun = 0;   // the bytes whose copies have begun
  unsigned under_way = 0;  // copies of pieces that have begun and not ended
  Status why;              // the reason why no further piece begins
};

// A `Copier` copies between the memory of one device and the memory of the host, without blocking
// (docs/seams/memory.md). Only the driving thread calls it, except where a comment says otherwise.
class Copier : public Pollable {
 public:
  // Returns the device's name in errors, such as "CUDA device 3". Any thread may call.
  virtual const std::string& name() const = 0;
  // Makes the link of messages that follow a stream of this device, or no stream if `stream` is null. Fails
  // with the errors of `Offload::can_follow`, and with `aborted` if the device has failed. Any thread may
  // call. Blocks only while the stream has no room for more work.
  virtual Result<std::unique_ptr<StreamLink>> link(void* stream) = 0;
  // Starts a copy. `poll` calls `done` later.
  virtual void start(CopyJob& job) = 0;
  // Gives up a copy that has not ended: `done` is called with `why` once nothing touches the memory any more,
  // possibly before this returns.
  virtual void cancel(CopyJob& job, const Status& why) = 0;
};

}  // namespace tutti
