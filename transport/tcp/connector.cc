#include "transport/tcp/connector.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "transport/meeting/crossing.h"
#include "transport/meeting/socket.h"
#include "transport/tcp/socket.h"

namespace tutti::tcp {
namespace {

using std::chrono::milliseconds;

// Returns the time limit for one attempt. Without a limit, an attempt would last too long on a
// network where packets vanish. A short attempt also helps the peer. Between two attempts, this
// rank accepts the peer's connection. During an attempt it may tell the peer to wait (see
// Channel::judge_incoming).
std::chrono::nanoseconds attempt_timeout(std::chrono::nanoseconds timeout) {
  return std::clamp<std::chrono::nanoseconds>(timeout / 6, milliseconds(200), milliseconds(5000));
}

// IP_BIND_ADDRESS_NO_PORT makes the kernel choose the port only when the socket connects. The kernel may then
// choose a port that connections to other addresses also use. Without this option, `bind` would choose a port
// that no connection uses, and such ports can run out.
void bind_to(int descriptor, const SocketAddress& local) {
  const int on = 1;
  static_cast<void>(setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on));
  static_cast<void>(bind(descriptor, local.raw(), local.length));
}

}  // namespace

Connector::Connector(Context& context, int peer, Address address, std::chrono::nanoseconds timeout,
                     ConnectorEvents& events)
    : context_(context),
      peer_(peer),
      address_(std::move(address)),
      events_(events),
      dialer_(context, peer, address_.endpoints, {timeout, attempt_timeout(timeout)}, *this) {}

Connector::~Connector() { drop_pipe(); }

void Connector::start_stripe(std::uint8_t number, const SocketAddress& local) {
  stripe_ = number;
  local_ = local;
  local_->set_port(0);
  start();
}

Descriptor Connector::dial(const SocketAddress& endpoint, int& error) {
  return meeting::begin_connect(endpoint, error, [&](int descriptor) {
    set_buffers(descriptor, context_.options.socket_buffer);
    set_congestion(descriptor, context_.congestion.choose(endpoint, context_.same_host(peer_)));
    if (local_ && local_->family() == endpoint.family()) bind_to(descriptor, *local_);
  });
}

security::Guard Connector::on_reached(int descriptor, Deadline limit) {
  tune(descriptor);
  context_.congestion.settle(descriptor, context_.same_host(peer_));
  return context_.guard_to(peer_, limit);
}

void Connector::on_passed(Pipe connection) {
  pipe_ = std::move(connection);
  have_ = 0;
  if (const int error = greet(); error != 0) return attempt_failed(error);
  watching_ = context_.watch(pipe_.descriptor(), EPOLLIN, *this).ok();
  if (!watching_) attempt_failed(ENOMEM);
}

// Sends the hello, and returns zero or an errno.
int Connector::greet() {
  Hello hello;
  hello.version = handshake_version;
  hello.stripe = stripe_;
  context_.introduce(hello, peer_, address_);
  const auto bytes = encode(hello);
  int error = 0;
  const std::size_t sent = pipe_.write(std::span<const std::byte>(bytes), error);
  return error == 0 && sent != bytes.size() ? ENOBUFS : error;
}

// Reads the peer's answer.
void Connector::on_ready(std::uint32_t) {
  int error = 0;
  // The read stops at the end of the answer, since frames may follow.
  have_ += pipe_.read(std::span(answer_).subspan(have_), error);
  if (error == EAGAIN) return;
  if (error != 0) return attempt_failed(error);
  if (have_ < answer_.size()) return;
  if (const auto verdict = decode_answer(answer_)) {
    judge(*verdict);
  } else if (const auto refusal = refusal_by_guard()) {
    drop_pipe();
    dialer_.attempt_denied(*refusal);
  } else {
    attempt_failed(ECONNREFUSED);  // some other program has the port now
  }
}

// A rank without a token passes no guard. If the peer has a guard, the peer's guard answers the hello.
std::optional<Status> Connector::refusal_by_guard() const {
  if (context_.credentials != nullptr) return std::nullopt;
  return security::refusal_by_guard(answer_, "it");
}

void Connector::judge(Verdict verdict) {
  switch (verdict) {
    case Verdict::welcome: {
      Pipe pipe = std::move(pipe_);
      context_.unwatch(pipe.descriptor());
      watching_ = false;
      dialer_.stop();
      events_.on_connected(std::move(pipe));
      return;
    }
    case Verdict::wait:
      drop_pipe();
      return dialer_.retry_after(meeting::pause_for_theirs);
    case Verdict::connected:
      return dialer_.fail(Code::unreachable, "it has a connection with another process that has our rank");
    case Verdict::stranger:
    case Verdict::wrong_rank:
      return dialer_.fail(Code::unreachable, "its port belongs to another process now");
    case Verdict::wrong_version:
      return dialer_.fail(Code::protocol_error, "it speaks another version of the protocol");
    case Verdict::gone:
      return dialer_.fail(Code::peer_lost, "it has left, or has given this rank up");
  }
}

void Connector::attempt_failed(int error) {
  drop_pipe();
  dialer_.attempt_failed(error);
}

void Connector::drop_pipe() {
  if (watching_) context_.unwatch(pipe_.descriptor());
  watching_ = false;
  pipe_.close();
}

void Connector::on_dial_failed(const Status& why) {
  drop_pipe();
  events_.on_connect_failed(why);
}

}  // namespace tutti::tcp
