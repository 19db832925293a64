#pragma once

#include <csignal>

#include <pthread.h>

namespace tutti {

// While a `SignalsBlocked` lives, all signals are blocked on its thread. Threads that its thread starts in
// this time inherit the block, and keep it. Signals belong to the host program, so no thread of ours may
// receive one.
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
