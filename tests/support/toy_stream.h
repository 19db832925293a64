#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tutti::test {

// A `ToyEvent` happens once, like a CUDA event.
class ToyEvent {
 public:
  void happen();
  bool happened() const;
  void wait();
  // Waits for the event, but for a millisecond at most. Returns whether the event has happened.
  bool wait_briefly();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
};

// A `ToyStream` is a thread that executes functions in the order in which they were added, like a
// CUDA stream with kernels.
class ToyStream {
 public:
  ToyStream();
  ~ToyStream();  // waits until all added functions have been executed
  ToyStream(const ToyStream&) = delete;
  ToyStream& operator=(const ToyStream&) = delete;

  void add(std::function<void()> work);
  // Returns an event that happens when all functions that were added before it have been executed.
  std::shared_ptr<ToyEvent> record();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tutti::test
