#pragma once

#include <thread>
#include <vector>

#include "transport/driver/driver.h"

namespace tutti {

// Destroys an object whose destructor waits, and so must not run on the driving thread. But the
// last handle to the object may be destroyed on that thread, inside a `then` callback. In that case
// a separate thread destroys the object.
//
// In a forked child nothing is destroyed. Threads that do not exist in the child may have been
// changing the object when the process forked. Besides, the communicator or memory that the object
// represents still belongs to the parent.
template <class T>
void retire(const Driver& driver, T* object) {
  if (driver.forked()) {
    static auto* const left_alone = new std::vector<T*>;  // leak checkers find the objects here
    left_alone->push_back(object);
  } else if (driver.driven_by_this_thread()) {
    std::thread([object] { delete object; }).detach();
  } else {
    delete object;
  }
}

}  // namespace tutti
