#pragma once

#include <pthread.h>
#include <signal.h>

namespace tutti_torch {

// While a `SignalsBlocked` lives, threads that its thread starts have all signals blocked, since the
// program's own threads must handle signals. The library has the same class in a private header, but a
// binding uses public headers only.
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
