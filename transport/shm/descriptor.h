#pragma once

#include <utility>

#include <unistd.h>

#include "transport/driver/fork_guard.h"

namespace tutti::shm {

// A file descriptor of ours, closed when this goes; in a forked child /dev/null has taken its place.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {
    if (number_ >= 0) guard_descriptor(number_);
  }
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset() {
    if (number_ < 0) return;
    release_descriptor(number_);
    ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

}  // namespace tutti::shm
