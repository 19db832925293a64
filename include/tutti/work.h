#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include <tutti/export.h>
#include <tutti/status.h>

namespace tutti {

class Operation;

// A `Work` is a handle to one operation in flight. Copies share it. Dropping every handle does not cancel the
// operation: it runs to its end, and its buffers must live that long.
//
// Any thread may use it. A thread that waits makes progress for all operations of the process while it does.
class TUTTI_API Work {
 public:
  Work() = default;  // already done, successfully
  Work(const Work& other);
  Work(Work&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)) {}
  Work& operator=(Work other) noexcept {
    std::swap(operation_, other.operation_);
    return *this;
  }
  ~Work();

  // Returns when the operation is over; throws `Error` if it failed, and invalid_argument inside a `then`
  // callback.
  void wait();
  // Waits for at most that long. Returns false if the operation is still running, which does not disturb it.
  bool wait_for(std::chrono::nanoseconds timeout);
  // Returns true once the operation is over, successfully or not. This makes no progress by itself.
  bool done() const;
  // Returns `ok` while the operation runs and after success, else why it failed.
  Status status() const;
  // Calls `callback` once when the operation is over, on the thread that notices, or at once if it is over
  // already. Callbacks must be short and must not wait; issuing operations is fine. An exception that one
  // throws is logged as an error and dropped: it disturbs neither this operation nor others.
  void then(std::function<void(const Status&)> callback);

  // Returns what has arrived, after a successful `recv`.
  struct Received {
    int source = -1;
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
  };
  Received received() const;

 private:
  friend class Operation;
  explicit Work(Operation* operation) : operation_(operation) {}
  Operation* operation_ = nullptr;
};

}  // namespace tutti
