#pragma once

#include <tutti/status.h>

#include "transport/offload/stream_wait.h"

namespace tutti {

// A `StreamLink` ties messages to streams of a device: the messages begin after work that was in a stream,
// and streams can wait for the end of the messages. Only the driving thread calls it, except for the
// destructor, which calls `end`.
class StreamLink {
 public:
  virtual ~StreamLink() = default;
  // Returns whether the work that the messages follow is done, or the error that it has ended with.
  virtual Result<bool> may_begin() = 0;
  // Returns a function that makes a stream wait until `end` has been called.
  virtual Result<StreamWait> wait_on(void* stream) = 0;
  // Releases all streams that wait. Further calls do nothing.
  virtual void end() = 0;
};

}  // namespace tutti
