#include "bench/limits/sockets.h"

#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/limits/process.h"
#include "bench/limits/timing.h"

namespace tutti::perf {
namespace {

bool choose(int socket, const std::string& congestion) {
  return setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, congestion.data(),
                    static_cast<socklen_t>(congestion.size())) == 0;
}

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {
    if (descriptor < 0) fail("socket");
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { close_now(); }
  int get() const { return descriptor_; }
  void close_now() {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_;
};

// A `Pair` holds the two ends of a connection over loopback.
struct Pair {
  std::unique_ptr<Socket> here;
  std::unique_ptr<Socket> there;
};

Pair connect_pair(const std::string& congestion) {
  const Socket listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (bind(listener.get(), generic, length) != 0 || listen(listener.get(), 1) != 0) fail("listen");
  getsockname(listener.get(), generic, &length);
  Pair pair;
  pair.here = std::make_unique<Socket>(socket(AF_INET, SOCK_STREAM, 0));
  if (connect(pair.here->get(), generic, length) != 0) fail("connect");
  pair.there = std::make_unique<Socket>(accept(listener.get(), nullptr, nullptr));
  for (const Socket* end : {pair.here.get(), pair.there.get()}) {
    const int on = 1;
    setsockopt(end->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!congestion.empty() && !choose(end->get(), congestion)) fail("TCP_CONGESTION");
  }
  return pair;
}

constexpr double warm_up = 0.03;  // seconds
double measured_seconds() { return 2 * std::chrono::duration<double>(span).count(); }

// Sends and receives as fast as the socket allows, until `end` or until the other end is closed. Returns the
// bytes received.
double both_ways(int socket, double end) {
  std::vector<char> out(mebibyte);
  std::vector<char> in(mebibyte);
  double bytes = 0;
  while (seconds_now() < end) {
    const ssize_t sent = send(socket, out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    const ssize_t received = recv(socket, in.data(), in.size(), MSG_DONTWAIT);
    if (received > 0) bytes += static_cast<double>(received);
    if (received == 0 || (sent < 0 && errno == EPIPE)) break;
    if (sent < 0 && received < 0) {
      pollfd ready{socket, POLLIN | POLLOUT, 0};
      poll(&ready, 1, 10);
    }
  }
  return bytes;
}

// These two functions send until the other end is closed.
void send_copied(int socket) {
  const std::vector<char> out(mebibyte);
  while (send(socket, out.data(), out.size(), MSG_NOSIGNAL) > 0) {
  }
}

// With MSG_ZEROCOPY the kernel sends the pages without copying them. A notice on the error queue says when
// the kernel no longer needs the pages.
void send_pinned(int socket) {
  const int on = 1;
  if (setsockopt(socket, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0) fail("SO_ZEROCOPY");
  const std::vector<char> out(mebibyte);
  for (;;) {
    const bool sent = send(socket, out.data(), out.size(), MSG_NOSIGNAL | MSG_ZEROCOPY) > 0;
    if (!sent && errno != ENOBUFS) return;
    char notice[128];
    msghdr message{};
    message.msg_control = notice;
    do {
      message.msg_controllen = sizeof notice;
    } while (recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
  }
}

double drain(int socket, double seconds) {
  std::vector<char> in(mebibyte);
  const double begin = seconds_now();
  double bytes = 0;
  double now = begin;
  for (; now < begin + seconds; now = seconds_now()) {
    const ssize_t received = recv(socket, in.data(), in.size(), 0);
    if (received <= 0) fail("recv");
    bytes += static_cast<double>(received);
  }
  return bytes / (now - begin) / 1e9;
}

}  // namespace

double tcp_stream_rate(int connections, const std::string& congestion, Sending how) {
  std::vector<std::unique_ptr<Socket>> sockets;
  std::vector<std::unique_ptr<Child>> senders;
  for (int i = 0; i < connections; ++i) {
    Pair pair = connect_pair(congestion);
    senders.push_back(std::make_unique<Child>([&] {
      pair.here->close_now();
      if (how == Sending::pinned) {
        send_pinned(pair.there->get());
      } else {
        send_copied(pair.there->get());
      }
    }));
    sockets.push_back(std::move(pair.here));
  }
  std::vector<double> rates(sockets.size());
  std::vector<std::thread> readers;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    readers.emplace_back([&, i] {
      drain(sockets[i]->get(), warm_up);
      rates[i] = drain(sockets[i]->get(), measured_seconds());
    });
  }
  double sum = 0;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    readers[i].join();
    sum += rates[i];
  }
  return sum;
}

double tcp_duplex_rate(const std::string& congestion) {
  const Pair pair = connect_pair(congestion);
  constexpr double long_enough = 10;
  const Child child([&] {
    pair.here->close_now();
    both_ways(pair.there->get(), seconds_now() + long_enough);
  });
  pair.there->close_now();
  both_ways(pair.here->get(), seconds_now() + warm_up);
  const double begin = seconds_now();
  const double bytes = both_ways(pair.here->get(), begin + measured_seconds());
  return bytes / (seconds_now() - begin) / 1e9;
}

double tcp_pingpong(bool polling, const std::string& congestion) {
  const Pair pair = connect_pair(congestion);
  const auto put = [](int socket) { send(socket, "12345678", 8, MSG_NOSIGNAL); };
  const auto get = [polling](int socket) {  // returns false at the end of the stream
    char in[8];
    for (;;) {
      const ssize_t received = recv(socket, in, sizeof in, polling ? MSG_DONTWAIT : 0);
      if (received > 0) return true;
      if (received == 0 || errno != EAGAIN) return false;
    }
  };
  const Child child([&] {
    pair.here->close_now();
    while (get(pair.there->get())) put(pair.there->get());
  });
  pair.there->close_now();
  const double time = time_of(
      [&] {
        put(pair.here->get());
        get(pair.here->get());
      },
      50);
  return time / 2 * 1e6;
}

bool has_congestion_control(const std::string& name) {
  const Socket probe(socket(AF_INET, SOCK_STREAM, 0));
  return choose(probe.get(), name);
}

}  // namespace tutti::perf
