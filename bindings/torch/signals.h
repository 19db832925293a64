#pragma once

#include <pthread.h>
#include <signal.h>

namespace tutti_torch {

// While a `SignalsBlocked` exists, all signals are blocked on the thread that made it. Threads that this
// thread starts in the meantime inherit the block, and keep it. So only the program's own threads receive
// signals. The library has the same class in a private header, but a binding uses public headers only.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace tutti_torch
