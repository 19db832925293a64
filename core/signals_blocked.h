#pragma once

#include <csignal>

#include <pthread.h>

namespace tutti {

// While a `SignalsBlocked` lives, all signals are blocked in its thread. Threads that this thread starts
// meanwhile also have all signals blocked. Signals belong to the host program, so none may be delivered to a
// thread of ours.
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

}  // namespace tutti
