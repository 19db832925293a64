#pragma once

#include <string_view>
#include <vector>

#include <tutti/status.h>

#include "transport/offload/stream_wait.h"

namespace tutti {

struct RunBinding;

// An `Execution` carries out one operation at a time, for example by messages or in shared memory. Only the
// driving thread calls it. It reports through its `RunBinding`.
class Execution {
 public:
  virtual ~Execution() = default;
  // Starts the operation. The execution may report before `start` returns. The caller keeps `binding` alive
  // until the execution has called `finished`.
  virtual void start(const RunBinding& binding) = 0;
  // Gives the operation up. `finished` is called with `why` once nothing touches the operation's memory any
  // more, possibly before `cancel` returns. Must be called at most once, between `start` and `finished`.
  virtual void cancel(const Status& why) = 0;
  // Returns the world ranks that the execution waits for, in ascending order.
  virtual std::vector<int> awaited() const = 0;
  // Returns the name of the library that the execution waits for; empty if it waits for none.
  virtual std::string_view awaited_library() const { return {}; }
  // Returns a function that makes a stream wait for the library that carries out the operation. Errors:
  // unsupported, if no library carries it out.
  virtual Result<StreamWait> wait_on(void*) {
    return Status(Code::unsupported, "no library carries out the call, so no stream can wait for it");
  }
  // Returns whether the execution fails by itself if a rank that it awaits leaves.
  virtual bool notices_leaving() const { return true; }
};

}  // namespace tutti
