#pragma once

#include <functional>
#include <memory>

#include <tutti/deadline.h>
#include <tutti/status.h>

namespace tutti {

// A `DetachedCall` calls a function of a foreign library on a separate thread, since the function may block
// forever. A caller that waits for the function can give up. The thread then stays behind until the function
// returns or the process ends. Signals are blocked in the thread, and in threads that the function starts.
class DetachedCall {
 public:
  // Starts `work`, which must own everything that it uses.
  explicit DetachedCall(std::function<int()> work);

  // Returns what `work` has returned. Fails with `timeout` at the deadline, with `aborted` once `interrupted`
  // returns true, and with `resource_exhausted` if no thread could be started. `wait` may be called again
  // after `timeout` and `aborted`.
  Result<int> wait(const std::function<bool()>& interrupted, Deadline deadline) const;
  bool has_returned() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tutti
