#include "transport/shm/local_socket.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

#include "core/error_text.h"
#include "transport/meeting/socket.h"

namespace tutti::shm {
namespace {

constexpr int backlog = 4096;  // the kernel takes the smaller of this and net.core.somaxconn
constexpr int type = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct AbstractName {
  sockaddr_un socket{};
  socklen_t length;

  // A zero byte in front makes the name abstract.
  explicit AbstractName(const std::string& name) {
    socket.sun_family = AF_UNIX;
    const std::size_t bytes = std::min(name.size(), sizeof socket.sun_path - 1);
    std::memcpy(socket.sun_path + 1, name.data(), bytes);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }
};

bool is_our_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int) * max_descriptors)];
};

}  // namespace

Result<Descriptor> listen_local(const std::string& name) {
  const AbstractName address(name);
  Descriptor listener = Descriptor::guarded(socket(AF_UNIX, type, 0));
  if (!listener || bind(listener.get(), address.get(), address.length) != 0 ||
      listen(listener.get(), backlog) != 0) {
    return Status(Code::unsupported, "cannot make an abstract unix socket: " + error_text(errno));
  }
  return listener;
}

Descriptor connect_local(const std::string& name, int& error) {
  const AbstractName address(name);
  Descriptor descriptor = Descriptor::guarded(socket(AF_UNIX, type, 0));
  error = 0;
  if (!descriptor) {
    error = errno;
  } else if (connect(descriptor.get(), address.get(), address.length) != 0) {
    error = errno;
    descriptor.reset();
  } else if (!is_our_user(descriptor.get())) {
    error = EACCES;
    descriptor.reset();
  }
  return descriptor;
}

Descriptor accept_local(int listener, int& error) {
  Descriptor socket = meeting::accept_next(listener, error);
  if (socket && !is_our_user(socket.get())) {
    error = EACCES;
    socket.reset();
  }
  return socket;
}

int send_note(int socket, const Note& note, std::span<const int> descriptors) {
  iovec bytes{const_cast<Note*>(&note), sizeof note};
  Control control{};
  msghdr packet{};
  packet.msg_iov = &bytes;
  packet.msg_iovlen = 1;
  if (!descriptors.empty()) {
    if (descriptors.size() > max_descriptors) return E2BIG;
    packet.msg_control = control.bytes;
    packet.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  while (sendmsg(socket, &packet, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int receive_note(int socket, Note& note, std::vector<Descriptor>& descriptors) {
  iovec bytes{&note, sizeof note};
  Control control;
  msghdr packet{};
  packet.msg_iov = &bytes;
  packet.msg_iovlen = 1;
  packet.msg_control = control.bytes;
  packet.msg_controllen = sizeof control.bytes;
  ssize_t got = recvmsg(socket, &packet, MSG_CMSG_CLOEXEC);
  // A reset is reported once, and packets that were sent before it can still be read afterwards.
  while (got < 0 && (errno == EINTR || errno == ECONNRESET)) {
    got = recvmsg(socket, &packet, MSG_CMSG_CLOEXEC);
  }
  if (got < 0) return errno;
  // The descriptors get an owner before anything is checked, so that none leaks.
  for (cmsghdr* header = CMSG_FIRSTHDR(&packet); header != nullptr; header = CMSG_NXTHDR(&packet, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number;
      std::memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
      descriptors.push_back(Descriptor::guarded(number));
    }
  }
  if (got == 0) return EPIPE;
  if ((packet.msg_flags & MSG_CTRUNC) != 0) return EMFILE;
  if ((packet.msg_flags & MSG_TRUNC) != 0 || got != sizeof note || !note.is_ours()) return EBADMSG;
  return 0;
}

}  // namespace tutti::shm
