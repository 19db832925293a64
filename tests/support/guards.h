#pragma once

#include <chrono>
#include <string>

#include <poll.h>

#include "core/security/guard.h"

namespace tutti::test {

inline security::SharedCredentials holder_of(const std::string& token) {
  security::Settings settings;
  settings.token = Secret(token);
  return security::Credentials::create(settings).take();
}

// Advances the guard until it has finished. Gives up if the socket is not ready for half a minute.
inline Status pass(security::Guard& guard, int socket) {
  using State = security::Guard::State;
  for (;;) {
    const State state = guard.advance(socket);
    if (state == State::done) return {};
    if (state == State::failed) return guard.status();
    pollfd entry{socket, static_cast<short>(state == State::writing ? POLLOUT : POLLIN), 0};
    if (poll(&entry, 1, 30'000) <= 0) return Status(Code::timeout, "the guard does not end");
  }
}

inline security::Guard guard_of(const std::string& token, const security::Parties& parties) {
  return security::Guard::connecting(holder_of(token), parties, Deadline::after(std::chrono::seconds(30)));
}

}  // namespace tutti::test
