#include "tools/doctor/responder.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <tutti/address.h>
#include <tutti/deadline.h>

#include "tools/doctor/test_socket.h"
#include "transport/meeting/socket.h"

namespace tutti::tools::doctor {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_services = 16;
constexpr std::chrono::nanoseconds greeting_limit = 3s;
// This limit is for all requests of a connection together.
constexpr std::chrono::nanoseconds service_limit = 30s;
constexpr std::chrono::nanoseconds scarcity_pause = 100ms;

std::uint16_t port_of(const Descriptor& listener) {
  SocketAddress address;
  address.length = sizeof address.storage;
  const auto raw = reinterpret_cast<sockaddr*>(&address.storage);
  return getsockname(listener.get(), raw, &address.length) == 0 ? address.port() : std::uint16_t{0};
}

Status answer_message(TestSocket& socket, std::size_t bytes, Deadline deadline) {
  if (bytes > longest_message) return Status(Code::protocol_error, "a message is too long");
  std::string body(bytes, '\0');
  if (const Status status = socket.receive(body, deadline); !status.ok()) return status;
  return socket.send({&request_message, 1}, deadline);
}

// Receives a burst, and answers with the number of its bytes and the time that they took. The first
// bytes start the clock, so they are not counted.
Status answer_burst(TestSocket& socket, Deadline deadline) {
  std::vector<char> buffer(std::size_t{256} * 1024);
  std::uint64_t bytes = 0;
  Deadline::Clock::time_point first, last;
  for (bool started = false;; started = true) {
    const Result<std::size_t> received = socket.receive_some(buffer, deadline);
    if (!received.ok()) return received.status();
    if (*received == 0) break;
    last = Deadline::Clock::now();
    if (started) {
      bytes += *received;
    } else {
      first = last;
    }
  }
  const auto time = static_cast<std::uint64_t>(std::chrono::nanoseconds(last - first).count());
  return socket.send(to_bytes<8>(bytes) + to_bytes<8>(time), deadline);
}

Status answer_requests(TestSocket& socket, Deadline deadline) {
  for (;;) {
    std::array<char, header_bytes> header{};
    if (const Status status = socket.receive(header, deadline); !status.ok()) return status;
    const std::size_t bytes = from_bytes({header.data() + 1, header_bytes - 1});
    if (header[0] == request_burst) return answer_burst(socket, deadline);
    if (header[0] != request_message) return Status(Code::protocol_error, "no such request");
    if (const Status status = answer_message(socket, bytes, deadline); !status.ok()) return status;
  }
}

}  // namespace

Responder::Responder(std::uint32_t host, std::string pass)
    : host_(host), pass_(std::move(pass)), stop_(eventfd(0, EFD_CLOEXEC)) {}

Responder::~Responder() {
  static_cast<void>(eventfd_write(stop_.get(), 1));
  if (acceptor_.joinable()) acceptor_.join();
  for (Service& service : services_) service.thread.join();
}

Result<std::uint16_t> Responder::listen(const std::string& address, const std::optional<PortRange>& ports) {
  const PortRange range = ports.value_or(PortRange{0, 0});
  Result<Descriptor> listener = meeting::listen_on("the probe", address, range.first, range.last);
  if (!listener.ok()) return listener.status();
  listeners_.push_back(*std::move(listener));
  return port_of(listeners_.back());
}

void Responder::start() { acceptor_ = std::thread(&Responder::accept_all, this); }

void Responder::accept_all() {
  std::vector<pollfd> watched = {{stop_.get(), POLLIN, 0}};
  for (const Descriptor& listener : listeners_) watched.push_back({listener.get(), POLLIN, 0});
  for (;;) {
    const int ready = poll(watched.data(), watched.size(), -1);
    if (ready < 0 && errno != EINTR) return;
    if (watched.front().revents != 0) return;
    for (std::size_t i = 0; ready > 0 && i < listeners_.size(); ++i) {
      if (watched[i + 1].revents != 0) accept(listeners_[i]);
    }
  }
}

void Responder::accept(const Descriptor& listener) {
  int error = 0;
  Descriptor socket = meeting::accept_next(listener.get(), error);
  if (meeting::is_scarcity(error)) std::this_thread::sleep_for(scarcity_pause);
  remove_ended();
  if (!socket || services_.size() >= most_services) return;
  Service& service = services_.emplace_back();
  try {
    service.thread = std::thread([this, &service, socket = std::move(socket)]() mutable {
      serve(std::move(socket));
      service.ended = true;
    });
  } catch (const std::system_error&) {  // the user's limit of threads has been reached
    services_.pop_back();
  }
}

void Responder::remove_ended() {
  for (auto service = services_.begin(); service != services_.end();) {
    if (!service->ended) {
      ++service;
      continue;
    }
    service->thread.join();
    service = services_.erase(service);
  }
}

void Responder::serve(Descriptor accepted) const {
  const int on = 1;
  static_cast<void>(setsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
  TestSocket socket(std::move(accepted), stop_.get());
  const std::string expected = std::string(greeting_start) + pass_;
  std::string greeting(expected.size(), '\0');
  if (!socket.receive(greeting, Deadline::after(greeting_limit)).ok() || greeting != expected) return;
  const Deadline deadline = Deadline::after(service_limit);
  if (!socket.send(to_bytes<4>(host_), deadline).ok()) return;
  static_cast<void>(answer_requests(socket, deadline));
}

}  // namespace tutti::tools::doctor
