#include "transport/tcp/connector.h"

#include <algorithm>
#include <cerrno>

#include <sys/epoll.h>

#include <tutti/log.h>

namespace tutti::tcp {
namespace {

using std::chrono::milliseconds;

// A round tries each address of the peer once. A peer counts as dead after this many rounds in a row in which
// every address refused. The pauses between these rounds are 10, 20, 40 and 80 ms.
constexpr int refused_rounds_until_lost = 5;
// A peer counts as unreachable after this many rounds in a row in which the network rejected every attempt.
// The further pauses are 160, 320 and 640 ms.
constexpr int rejected_rounds_until_lost = 8;
// The peer answers `wait` while its own connection is on its way. If the peer's connection has not arrived
// after this pause, this rank makes its next attempt.
constexpr milliseconds pause_for_theirs{100};

constexpr const char* firewall_hint =
    " (if a firewall is in between: TUTTI_PORT_RANGE says which ports ranks listen on, TUTTI_SOCKET_IFNAME "
    "and "
    "TUTTI_BIND_ADDRESS on which network)";

bool is_rejection(const asio::error_code& error) {
  return error == asio::error::host_unreachable || error == asio::error::network_unreachable ||
         error == asio::error::access_denied || error == asio::error::no_permission;
}

// Returns the time limit for one attempt. Without a limit, an attempt would last too long on a network where
// packets vanish. A short attempt also helps the peer: between two attempts, this rank accepts the
// peer's connection, but during an attempt it may tell the peer to wait (see Channel::judge_incoming).
std::chrono::nanoseconds attempt_timeout(std::chrono::nanoseconds timeout) {
  return std::clamp<std::chrono::nanoseconds>(timeout / 6, milliseconds(200), milliseconds(5000));
}

}  // namespace

Connector::Connector(Context& context, int peer, Address address, std::chrono::nanoseconds timeout,
                     ConnectorEvents& events)
    : context_(context),
      peer_(peer),
      address_(std::move(address)),
      deadline_(Deadline::after(timeout)),
      attempt_timeout_(attempt_timeout(timeout)),
      events_(events) {}

Connector::~Connector() {
  context_.timers.cancel(*this);
  drop_socket();
}

void Connector::start() { try_next(); }

void Connector::start_stripe(std::uint8_t number, const asio::ip::address& local) {
  stripe_ = number;
  local_ = local;
  try_next();
}

void Connector::try_next() {
  phase_ = Phase::connecting;
  asio::error_code error;
  const Endpoint& endpoint = address_.endpoints[next_endpoint_];
  const SocketSetup setup{context_.options.socket_buffer,
                          context_.congestion.choose(endpoint.address(), context_.same_host(peer_)), local_};
  pipe_ = Pipe(begin_connect(endpoint, setup, error));
  if (!error) {
    connected();
    return;
  }
  if (error != asio::error::in_progress) {
    attempt_failed(error);
    return;
  }
  watching_ = context_.watch(pipe_.descriptor(), EPOLLOUT, *this).ok();
  if (watching_) {
    context_.timers.set(*this, earlier(deadline_, Deadline::after(attempt_timeout_)));
  } else {
    attempt_failed(asio::error::no_memory);
  }
}

void Connector::on_ready(std::uint32_t) {
  if (phase_ == Phase::greeting) return read_answer();
  if (phase_ == Phase::proving) return prove();
  if (const asio::error_code error = connect_result(pipe_.descriptor())) {
    attempt_failed(error);
  } else {
    connected();
  }
}

void Connector::connected() {
  phase_ = Phase::proving;
  tune(pipe_.descriptor());
  context_.congestion.settle(pipe_.descriptor(), context_.same_host(peer_));
  const security::Parties parties{security::Service::data, static_cast<std::uint32_t>(context_.owner->rank()),
                                  static_cast<std::uint32_t>(peer_)};
  const Deadline limit = earlier(deadline_, Deadline::after(attempt_timeout_));
  pipe_.guard_by(security::Guard::connecting(context_.options.credentials, parties, limit));
  context_.timers.set(*this, limit);
  prove();
}

void Connector::prove() {
  switch (pipe_.pass()) {
    case security::Guard::State::reading:
      return watch_for(EPOLLIN);
    case security::Guard::State::writing:
      return watch_for(EPOLLOUT);
    case security::Guard::State::done:
      return greet();
    case security::Guard::State::failed:
      return guard_failed();
  }
}

void Connector::guard_failed() {
  const Status why = pipe_.guard()->status();
  switch (why.code()) {
    case Code::unauthenticated:
    case Code::mismatch:
      return fail(why.code(), why.message());
    case Code::timeout:
      return attempt_failed(asio::error::timed_out);
    case Code::peer_lost:
      return attempt_failed(asio::error::connection_reset);
    default:
      return attempt_failed(asio::error::connection_refused);  // some other program has the port now
  }
}

void Connector::watch_for(std::uint32_t events) {
  if (watching_) {
    context_.rewatch(pipe_.descriptor(), events, *this);
    return;
  }
  watching_ = context_.watch(pipe_.descriptor(), events, *this).ok();
  if (!watching_) attempt_failed(asio::error::no_memory);
}

void Connector::greet() {
  phase_ = Phase::greeting;
  have_ = 0;
  Hello hello;
  hello.version = handshake_version;
  hello.from = static_cast<std::uint32_t>(context_.owner->rank());
  hello.to = static_cast<std::uint32_t>(peer_);
  hello.stripe = stripe_;
  hello.from_nonce = context_.address.nonce;
  hello.to_nonce = address_.nonce;
  const auto bytes = encode(hello);
  int error = 0;
  const std::size_t sent = pipe_.write(std::span<const std::byte>(bytes), error);
  if (error == 0 && sent != bytes.size()) error = ENOBUFS;
  if (error != 0) {
    attempt_failed(system_error(error));
    return;
  }
  // The peer may answer `welcome` at any moment from now on, so this attempt may last until the deadline of
  // all attempts.
  context_.timers.set(*this, deadline_);
  watch_for(EPOLLIN);
}

void Connector::read_answer() {
  int error = 0;
  // The read stops at the end of the answer, since frames may follow.
  have_ += pipe_.read(std::span(answer_).subspan(have_), error);
  if (error == EAGAIN) return;
  if (error != 0) {
    attempt_failed(error == EPIPE ? asio::error_code(asio::error::eof) : system_error(error));
    return;
  }
  if (have_ < answer_.size()) return;
  if (const auto verdict = decode_answer(answer_)) {
    judge(*verdict);
  } else if (const auto refusal = security::refusal_by_guard(answer_, "it")) {
    fail(refusal->code(), refusal->message());
  } else {
    attempt_failed(asio::error::connection_refused);  // some other program has the port now
  }
}

void Connector::judge(Verdict verdict) {
  switch (verdict) {
    case Verdict::welcome: {
      Pipe pipe = std::move(pipe_);
      context_.unwatch(pipe.descriptor());
      watching_ = false;
      context_.timers.cancel(*this);
      events_.on_connected(std::move(pipe));
      return;
    }
    case Verdict::wait:
      drop_socket();
      pause(pause_for_theirs);
      return;
    case Verdict::connected:
      return fail(Code::unreachable, "it has a connection with another process that has our rank");
    case Verdict::stranger:
    case Verdict::wrong_rank:
      return fail(Code::unreachable, "its port belongs to another process now");
    case Verdict::wrong_version:
      return fail(Code::protocol_error, "it speaks another version of the protocol");
    case Verdict::gone:
      return fail(Code::peer_lost, "it has left, or has given this rank up");
  }
}

void Connector::attempt_failed(const asio::error_code& error) {
  drop_socket();
  last_error_ = error;
  if (error == asio::error::connection_refused) ++refused_in_round_;
  if (is_rejection(error)) ++rejected_in_round_;
  if (++next_endpoint_ < address_.endpoints.size()) {
    pause(milliseconds(0));
  } else {
    round_failed();
  }
}

void Connector::round_failed() {
  refused_rounds_ = refused_in_round_ == address_.endpoints.size() ? refused_rounds_ + 1 : 0;
  rejected_rounds_ = rejected_in_round_ == address_.endpoints.size() ? rejected_rounds_ + 1 : 0;
  refused_in_round_ = rejected_in_round_ = 0;
  next_endpoint_ = 0;
  if (refused_rounds_ >= refused_rounds_until_lost) {
    fail(Code::peer_lost, "no process listens at " + format_endpoints(address_.endpoints) + " any more");
    return;
  }
  if (rejected_rounds_ >= rejected_rounds_until_lost) {
    fail(Code::unreachable, "no connection to " + format_endpoints(address_.endpoints) + ": " +
                                text_of(last_error_) + firewall_hint);
    return;
  }
  pause(backoff_.next());
}

void Connector::pause(milliseconds delay) {
  phase_ = Phase::pausing;
  context_.timers.set(*this, earlier(deadline_, Deadline::after(delay)));
}

void Connector::on_timer() {
  if (deadline_.expired()) {
    const std::string last = last_error_ ? ", last: " + text_of(last_error_) : ": nothing answered";
    // `scarce` says whether the cause is a lack of descriptors or of local ports.
    const bool scarce = is_scarcity(last_error_) || last_error_.value() == EADDRNOTAVAIL;
    fail(scarce ? Code::resource_exhausted : Code::unreachable,
         "no connection to " + format_endpoints(address_.endpoints) + " in time" + last +
             (scarce ? "" : firewall_hint));
  } else if (phase_ == Phase::pausing) {
    try_next();
  } else {
    attempt_failed(asio::error::timed_out);
  }
}

void Connector::drop_socket() {
  if (watching_) context_.unwatch(pipe_.descriptor());
  watching_ = false;
  pipe_.close();
}

void Connector::fail(Code code, const std::string& why) {
  drop_socket();
  context_.timers.cancel(*this);
  events_.on_connect_failed(
      Status(code, "cannot connect to " + context_.describe(peer_) + ": " + why, peer_));
}

}  // namespace tutti::tcp
