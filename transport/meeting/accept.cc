#include "transport/meeting/accept.h"

#include <cerrno>

#include <sys/socket.h>

namespace tutti::meeting {

Descriptor accept_next(int listener, int& error) {
  int accepted = -1;
  do {
    accepted = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (accepted < 0 && errno == EINTR);
  error = accepted < 0 ? errno : 0;
  return Descriptor::guarded(accepted);
}

bool is_scarcity(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace tutti::meeting
