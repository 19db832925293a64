#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/driver/driver.h"
#include "transport/inproc/exposed_memory.h"

namespace tutti::inproc {

class Pipe;

// Other ranks use a rank's `Mailbox` to announce pipes to that rank, to wake its driver, and to write into
// its memory.
class Mailbox {
 public:
  void start(Driver& driver);
  // Stops the mailbox, so that it no longer wakes the driver.
  void stop();
  bool stopped() const;
  void notify();
  // Announces to this rank a pipe that a peer has made.
  void announce(std::shared_ptr<Pipe> pipe);
  std::vector<std::shared_ptr<Pipe>> take_announced();
  const std::shared_ptr<ExposedMemory>& memory() const { return memory_; }
  bool pending() const { return pending_.load(); }
  bool take_pending() { return pending_.load() && pending_.exchange(false); }

 private:
  mutable std::mutex mutex_;
  Driver* driver_ = nullptr;
  bool stopped_ = false;
  std::atomic<bool> pending_{false};
  std::vector<std::shared_ptr<Pipe>> announced_;
  const std::shared_ptr<ExposedMemory> memory_ = std::make_shared<ExposedMemory>();
};

}  // namespace tutti::inproc
