#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include <tutti/export.h>
#include <tutti/status.h>

namespace tutti {

class Operation;

// A `Work` is a handle to one operation in flight. Copies share the operation. Destroying every handle does
// not cancel the operation: it runs to its end, and its buffers must live that long.
//
// Thread rule: any thread may use it. A thread that waits makes progress for all operations of all
// communicators that come from the same `init`.
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

  // Blocks until the operation has ended. Throws `Error` if it failed. A `then` callback must not wait, since
  // other operations may make no progress until the callback returns. Inside a callback, this throws
  // `invalid_argument` if the operation still runs.
  void wait();
  // Waits for at most `timeout`. Returns false if the operation still runs then; the operation continues.
  // Throws like `wait`.
  bool wait_for(std::chrono::nanoseconds timeout);
  // Makes `stream` (a cudaStream_t, of any device) wait for the operation, if a library such as NCCL carries
  // it out, or if it consists of messages in device memory. Returns at once. Only `wait` tells whether all
  // ranks have made the same call. Does nothing if the operation has ended. Throws the operation's error if
  // it failed, `unsupported` if it is no such operation or the stream is being captured, and
  // `invalid_argument` if no such stream exists. Callbacks may call it.
  void wait_on(void* stream);
  // Returns true once the operation has ended, successfully or not. This makes no progress by itself.
  bool done() const;
  // Returns `ok` while the operation runs and after success, else the failure.
  Status status() const;
  // Calls `callback` once when the operation has ended, on the thread that notices it. If the operation has
  // already ended, `then` calls it at once, on this thread. A callback must be short and must not wait; it
  // may issue operations. An exception from a callback is logged as an error and dropped.
  void then(std::function<void(const Status&)> callback);

  // `Received` describes the message of a successful `recv`: `source` is a rank of the communicator.
  struct Received {
    int source = -1;
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
  };
  // Returns the defaults if the operation is not a `recv`, is still running or has failed.
  Received received() const;

 private:
  friend class Operation;
  explicit Work(Operation* operation) : operation_(operation) {}
  Operation* operation_ = nullptr;
};

}  // namespace tutti
