#pragma once

#include <utility>

#include <unistd.h>

#include "core/fork_guard.h"

namespace tutti {

// A `Descriptor` owns a file descriptor, and its destructor closes it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  // Returns an owner of the descriptor `number`. In forked children, /dev/null replaces that descriptor
  // (fork_guard.h).
  static Descriptor guarded(int number) {
    Descriptor made(number);
    made.guarded_ = number >= 0;
    if (made.guarded_) guard_descriptor(number);
    return made;
  }
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)), guarded_(std::exchange(other.guarded_, false)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
      guarded_ = std::exchange(other.guarded_, false);
    }
    return *this;
  }

  // Returns the descriptor, or -1 if there is none.
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset() {
    if (const int number = release(); number >= 0) ::close(number);
  }
  // Gives the descriptor to the caller, which must close it.
  [[nodiscard]] int release() {
    if (std::exchange(guarded_, false)) release_descriptor(number_);
    return std::exchange(number_, -1);
  }

 private:
  int number_ = -1;
  bool guarded_ = false;
};

}  // namespace tutti
