#pragma once

#include <csignal>

#include <pthread.h>

namespace tutti {

// For as long as it lives, no signal is delivered to this thread, nor to threads that it starts meanwhile:
// the host's signals are the host's, and none may be handled on a thread of ours.
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
