#pragma once

#include <functional>
#include <memory>

#include <tutti/deadline.h>
#include <tutti/status.h>

namespace tutti {

// A `DetachedCall` calls a function of a foreign library that may block for ever, on a thread of its own. So
// whoever waits for the function can give up. Then the thread stays behind until the function returns or the
// process ends. Signals are blocked in the thread, and in threads that the function starts.
class DetachedCall {
 public:
  // Starts `work`, which must own everything that it uses.
  explicit DetachedCall(std::function<int()> work);

  // Returns what `work` has returned. Fails with `timeout` at the deadline, with `aborted` once `interrupted`
  // returns true, and with `resource_exhausted` if no thread could be started. It may be called again after
  // the first two.
  Result<int> wait(const std::function<bool()>& interrupted, Deadline deadline) const;
  bool has_returned() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tutti
