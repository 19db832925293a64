#include "transport/shm/bell.h"

#include <cerrno>

#include <sys/socket.h>

#include "core/error_text.h"

namespace tutti::shm {
namespace {

int socket_option(int socket, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  return getsockopt(socket, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
}

}  // namespace

SharedRope BellRope::from(Descriptor socket) {
  const bool is_rope =
      socket_option(socket.get(), SO_DOMAIN) == AF_UNIX && socket_option(socket.get(), SO_TYPE) == SOCK_DGRAM;
  return is_rope ? SharedRope(new BellRope(std::move(socket))) : nullptr;
}

void BellRope::ring() const {
  // The kernel refuses this if the peer is gone, or if many rings already wait for the peer, which then wakes
  // in any case.
  static_cast<void>(::send(socket_.get(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL));
}

Status Bell::create() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Status(Code::resource_exhausted, "cannot make a pair of sockets: " + error_text(errno));
  }
  ear_ = Descriptor::guarded(ends[0]);
  rope_ = BellRope::from(Descriptor::guarded(ends[1]));
  return {};
}

void Bell::on_ready(std::uint32_t) {
  // This reads a single ring, since a sleeper is usually rung once. If more rings wait, each of them just
  // wakes the driver once more.
  std::byte ignored;
  static_cast<void>(::recv(ear_.get(), &ignored, sizeof ignored, MSG_DONTWAIT));
}

}  // namespace tutti::shm
