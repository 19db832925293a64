#include "tools/doctor/path_tester.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <tutti/address.h>
#include <tutti/deadline.h>
#include <tutti/status.h>

#include "core/descriptor.h"
#include "core/error_text.h"
#include "tools/doctor/test_socket.h"

namespace tutti::tools::doctor {
namespace {

using namespace std::chrono_literals;
using Clock = Deadline::Clock;

// This limit leaves time for a second try: the kernel repeats the first packet of a connection
// after one second.
constexpr std::chrono::nanoseconds connect_limit = 3s;
// The test waits at most this long for one connection while other connections may be ready.
constexpr std::chrono::nanoseconds patience = 20ms;
constexpr std::chrono::nanoseconds answer_limit = 3s;
constexpr std::chrono::nanoseconds full_packet_limit = 2s;
constexpr std::chrono::nanoseconds smaller_packet_limit = 300ms;
constexpr std::chrono::nanoseconds burst_time = 125ms;
constexpr std::chrono::nanoseconds burst_limit = 5s;
constexpr std::size_t round_trips = 21;
constexpr int smallest_message = 256;
// The kernel may add an option of this size (SACK) to a packet that it sends again. It would then
// split a message that fills a whole packet. The parts could arrive although a whole packet would
// be lost, so test messages leave room for the option.
constexpr int room_for_option = 12;

Outcome outcome_of(int error) {
  if (error == ECONNREFUSED) return Outcome::refused;
  if (error == ETIMEDOUT) return Outcome::timed_out;
  if (error == EHOSTUNREACH || error == ENETUNREACH) return Outcome::unreachable;
  return Outcome::failed;
}

void fail(Path& path, int error) {
  path.outcome = outcome_of(error);
  path.error = error_text(error);
}

// Begins to connect. Returns no socket and sets errno on failure.
Descriptor begin_connect(const SocketAddress& address) {
  Descriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket) return socket;
  const int on = 1, unsent = 256 * 1024;
  static_cast<void>(setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
  static_cast<void>(setsockopt(socket.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent));
  if (connect(socket.get(), address.raw(), address.length) == 0 || errno == EINPROGRESS) return socket;
  const int error = errno;
  socket.reset();
  errno = error;
  return socket;
}

std::string own_address(int socket) {
  SocketAddress address;
  address.length = sizeof address.storage;
  const auto raw = reinterpret_cast<sockaddr*>(&address.storage);
  return getsockname(socket, raw, &address.length) == 0 ? address.host() : "";
}

// A `PathTest` is one connection to a target.
class PathTest {
 public:
  PathTest(const Target& target, const std::string& pass) : target_(target), pass_(pass) {
    path_.to = target.address;
    path_.port = target.port;
    const std::optional<SocketAddress> address = parse_address(target.address, target.port);
    if (!address) {
      fail(path_, EINVAL);
      return;
    }
    if (const auto source = route_source(*address)) path_.from = source->host();
    if (Descriptor socket = begin_connect(*address)) {
      socket_.emplace(std::move(socket));
    } else {
      fail(path_, errno);
    }
  }

  // Waits for the connection, and sends the greeting. Returns false if the connection is still
  // being made at the deadline.
  bool greet(Deadline deadline) {
    if (!socket_ || greeted_) return true;
    const int error = socket_->await_connection(deadline);
    if (error == ETIMEDOUT) return false;
    if (error != 0) {
      fail(path_, error);
      socket_.reset();
      return true;
    }
    path_.from = own_address(socket_->descriptor());
    greeted_ = socket_->send(std::string(greeting_start) + pass_, Deadline::after(answer_limit));
    return true;
  }

  // Returns whether the connection leads to the target's host. Call `greet` first.
  bool reach() {
    if (!socket_) return false;
    if (!greeted_) {
      fail(path_, ETIMEDOUT);
      return false;
    }
    std::array<char, 4> host{};
    Status status = *greeted_;
    if (status.ok()) status = socket_->receive(host, Deadline::after(answer_limit));
    if (!status.ok()) {
      path_.error = "the connection was made, but then: " + status.message();
      return false;
    }
    const bool is_right = from_bytes({host.data(), host.size()}) == target_.host;
    path_.outcome = is_right ? Outcome::reached : Outcome::wrong_host;
    return is_right;
  }

  void measure() {
    measure_round_trip();
    measure_packet();
    if (path_.largest_packet == path_.full_packet) measure_bandwidth();
  }

  // Sends a message of `bytes` bytes, header included. Returns whether the answer came within
  // `limit`.
  bool exchange(int bytes, std::chrono::nanoseconds limit) {
    const Deadline deadline = Deadline::after(limit);
    std::string message = header_of(request_message, static_cast<std::size_t>(bytes) - header_bytes);
    message.resize(static_cast<std::size_t>(bytes));
    char answer = 0;
    return socket_->send(message, deadline).ok() && socket_->receive({&answer, 1}, deadline).ok();
  }

  Path path() const { return path_; }

 private:
  void measure_round_trip() {
    constexpr int one_byte = header_bytes + 1;
    std::vector<double> times;
    for (std::size_t i = 0; i <= round_trips; ++i) {
      const Clock::time_point start = Clock::now();
      if (!exchange(one_byte, answer_limit)) break;
      const std::chrono::duration<double, std::micro> time = Clock::now() - start;
      if (i > 0)
        // The first exchange does not count, since it warms up both sides.
        times.push_back(time.count());
    }
    if (times.empty()) return;
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
    path_.round_trip_us = times[times.size() / 2];
  }

  void measure_packet() {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (getsockopt(socket_->descriptor(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return;
    const int most = static_cast<int>(std::min<std::uint32_t>(info.tcpi_snd_mss, longest_message));
    const bool is_v6 = path_.to.find(':') != std::string::npos;
    const bool has_times = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
    const int headers = (is_v6 ? 40 : 20) + 20 + (has_times ? 12 : 0);
    path_.full_packet = path_.largest_packet = most + headers;
    const int payload = most - room_for_option;
    if (payload <= smallest_message || exchange(payload, full_packet_limit)) return;
    path_.largest_packet = largest_that_arrives(payload) + headers;
  }

  // Returns the size of the largest message below `too_large` that is answered. Each try uses a new
  // connection, since a lost packet holds up all later data on its connection.
  int largest_that_arrives(int too_large) const {
    int arrives = smallest_message;
    while (too_large - arrives > 1) {
      const int middle = (arrives + too_large) / 2;
      PathTest other(target_, pass_);
      other.greet(Deadline::after(connect_limit));
      const bool passes = other.reach() && other.exchange(middle, smaller_packet_limit);
      (passes ? arrives : too_large) = middle;
    }
    return arrives;
  }

  void measure_bandwidth() {
    const std::string piece(std::size_t{64} * 1024, '\0');
    const Deadline deadline = Deadline::after(burst_limit), end = Deadline::after(burst_time);
    if (!socket_->send(header_of(request_burst, 0), deadline).ok()) return;
    while (!end.expired()) {
      if (!socket_->send(piece, deadline).ok()) return;
    }
    socket_->finish();
    std::array<char, 16> answer{};
    if (!socket_->receive(answer, deadline).ok()) return;
    const auto bytes = static_cast<double>(from_bytes({answer.data(), 8}));
    const auto nanoseconds = static_cast<double>(from_bytes({answer.data() + 8, 8}));
    if (nanoseconds > 0) path_.bandwidth = bytes / nanoseconds * 1e9;
  }

  const Target& target_;
  const std::string& pass_;
  Path path_;
  std::optional<TestSocket> socket_;
  std::optional<Status> greeted_;  // the result of sending the greeting; empty until then
};

// Sends a greeting on each connection soon after the connection has been made, even if another
// target does not answer. A host closes a connection that sends no greeting for some seconds.
void greet_all(std::vector<PathTest>& tests) {
  const Deadline deadline = Deadline::after(connect_limit);
  for (bool all_greeted = false; !all_greeted && !deadline.expired();) {
    all_greeted = true;
    for (PathTest& test : tests) {
      if (!test.greet(earlier(deadline, Deadline::after(patience)))) all_greeted = false;
    }
  }
}

}  // namespace

std::vector<Path> test_paths(const std::vector<Target>& targets, const std::string& pass) {
  std::vector<PathTest> tests;
  for (const Target& target : targets) tests.emplace_back(target, pass);
  greet_all(tests);
  std::vector<Path> paths;
  for (PathTest& test : tests) {
    if (test.reach()) test.measure();
    paths.push_back(test.path());
  }
  return paths;
}

}  // namespace tutti::tools::doctor
