#pragma once

#include <cerrno>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

namespace tutti::provider {

// An `EventQueue` is a queue of events with a descriptor that can be polled, like the descriptor of a
// completion channel. Reading blocks, unless the descriptor has been made non-blocking.
template <class Event>
class EventQueue {
 public:
  EventQueue() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  }
  ~EventQueue() {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  int descriptor() const { return ends_[0]; }
  // Makes the descriptor ready for ever although there are no events, like the descriptor of a removed
  // device.
  void end() {
    close(ends_[1]);
    ends_[1] = -1;
  }
  void add(const Event& event) const {
    if (ends_[1] < 0) return;
    if (write(ends_[1], &event, sizeof event) != sizeof event) throw std::runtime_error("write");
  }
  // Takes the oldest event. Returns false, and sets errno, if there is none and the descriptor does not
  // block.
  bool take(Event& event) const {
    ssize_t got = 0;
    do {
      got = read(ends_[0], &event, sizeof event);
    } while (got < 0 && errno == EINTR);
    return got == sizeof event;
  }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace tutti::provider
