#include "transport/meeting/dialer.h"

#include <cerrno>
#include <utility>

#include <sys/epoll.h>

#include "core/error_text.h"
#include "transport/meeting/socket.h"

namespace tutti::meeting {
namespace {

using std::chrono::milliseconds;

// A round tries each address of the peer once. A peer counts as dead after this many rounds in a row in which
// every address refused. The pauses between these rounds are 10, 20, 40 and 80 ms.
constexpr int refused_rounds_until_lost = 5;
// A peer counts as unreachable after this many rounds in a row in which the network rejected every attempt.
// The pauses between these rounds are 10, 20, 40, 80, 160, 320 and 640 ms.
constexpr int rejected_rounds_until_lost = 8;

constexpr const char* firewall_hint =
    " (if a firewall is in between: TUTTI_PORT_RANGE says which ports ranks listen on, TUTTI_SOCKET_IFNAME "
    "and "
    "TUTTI_BIND_ADDRESS on which network)";

bool is_rejection(int error) {
  return error == EHOSTUNREACH || error == ENETUNREACH || error == EACCES || error == EPERM;
}

std::string failure_text(int error) {
  return error == EPIPE ? "it closed the connection" : error_text(error);
}

}  // namespace

Dialer::Dialer(TransportContext& context, int peer, Endpoints endpoints, const DialerOptions& options,
               DialerEvents& events)
    : context_(context),
      peer_(peer),
      endpoints_(std::move(endpoints)),
      deadline_(Deadline::after(options.timeout)),
      step_(options.step),
      events_(events) {}

void Dialer::try_next() {
  phase_ = Phase::connecting;
  int error = 0;
  connection_ = Connection(events_.dial(endpoints_[next_], error));
  if (error == 0) return reached();
  if (error != EINPROGRESS) return attempt_failed(error);
  context_.timers.set(*this, step_limit());
  watch_for(EPOLLOUT);
}

void Dialer::on_ready(std::uint32_t) {
  if (phase_ == Phase::proving) return prove();
  const int error = connect_result(connection_.descriptor());
  error == 0 ? reached() : attempt_failed(error);
}

void Dialer::reached() {
  phase_ = Phase::proving;
  const Deadline limit = step_limit();
  connection_.guard_by(events_.on_reached(connection_.descriptor(), limit));
  context_.timers.set(*this, limit);
  prove();
}

void Dialer::prove() {
  switch (connection_.pass()) {
    case security::Guard::State::reading:
      return watch_for(EPOLLIN);
    case security::Guard::State::writing:
      return watch_for(EPOLLOUT);
    case security::Guard::State::done:
      return passed();
    case security::Guard::State::failed:
      return guard_failed();
  }
}

// From now on, the peer may already use this connection. If this side gave up, the peer would keep a dead
// connection. So this attempt may last until the deadline of all attempts.
void Dialer::passed() {
  phase_ = Phase::passed;
  unwatch();
  context_.timers.set(*this, deadline_);
  events_.on_passed(std::exchange(connection_, Connection()));
}

void Dialer::guard_failed() {
  const Status why = connection_.guard()->status();
  switch (why.code()) {
    case Code::unauthenticated:
    case Code::mismatch:
      return attempt_denied(why);
    case Code::timeout:
      return attempt_failed(ETIMEDOUT);
    case Code::peer_lost:
      return attempt_failed(ECONNRESET);
    default:
      return attempt_failed(ECONNREFUSED);  // some other program has the port now
  }
}

void Dialer::watch_for(std::uint32_t events) {
  if (watching_) return context_.rewatch(connection_.descriptor(), events, *this);
  watching_ = context_.watch(connection_.descriptor(), events, *this).ok();
  if (!watching_) attempt_failed(ENOMEM);
}

void Dialer::attempt_failed(int error) {
  last_error_ = error;
  if (error == ECONNREFUSED) ++refused_in_round_;
  if (is_rejection(error)) ++rejected_in_round_;
  try_other();
}

void Dialer::attempt_denied(const Status& why) {
  denied_at_ = next_;
  denial_ = why;
  ++denied_in_round_;
  try_other();
}

void Dialer::try_other() {
  drop();
  if (++next_ < endpoints_.size()) {
    retry_after(milliseconds(0));
  } else {
    round_failed();
  }
}

// An endpoint that denies says nothing about the peer if others do not answer. So in a round, it counts like
// the others.
void Dialer::round_failed() {
  const std::size_t all = endpoints_.size(), denied = std::exchange(denied_in_round_, 0);
  refused_rounds_ = std::exchange(refused_in_round_, 0) + denied == all ? refused_rounds_ + 1 : 0;
  rejected_rounds_ = std::exchange(rejected_in_round_, 0) + denied == all ? rejected_rounds_ + 1 : 0;
  next_ = 0;
  if (denied == all) return fail(denial_.code(), denial_.message());
  if (refused_rounds_ >= refused_rounds_until_lost)
    return give_up(Code::peer_lost, "no process listens at " + format_endpoints(endpoints_) + " any more");
  if (rejected_rounds_ >= rejected_rounds_until_lost) {
    return give_up(Code::unreachable, "no connection to " + format_endpoints(endpoints_) + ": " +
                                          failure_text(last_error_) + firewall_hint);
  }
  retry_after(backoff_.next());
}

void Dialer::retry_after(milliseconds pause) {
  drop();
  phase_ = Phase::pausing;
  context_.timers.set(*this, earlier(deadline_, Deadline::after(pause)));
}

void Dialer::on_timer() {
  if (deadline_.expired()) return out_of_time();
  phase_ == Phase::pausing ? try_next() : attempt_failed(ETIMEDOUT);
}

void Dialer::out_of_time() {
  const std::string last = last_error_ != 0 ? ", last: " + failure_text(last_error_) : ": nothing answered";
  // `scarce` says whether the cause is a lack of descriptors, memory or local ports.
  const bool scarce = is_scarcity(last_error_) || last_error_ == EADDRNOTAVAIL;
  give_up(
      scarce ? Code::resource_exhausted : Code::unreachable,
      "no connection to " + format_endpoints(endpoints_) + " in time" + last + (scarce ? "" : firewall_hint));
}

// Reports why no endpoint has accepted a connection. If one of them has denied it, that is the likeliest
// reason.
void Dialer::give_up(Code code, const std::string& why) {
  if (denial_.ok()) return fail(code, why);
  const std::string denied = "the process at " + format_endpoints({endpoints_[denied_at_]}) +
                             " has denied a connection (" + denial_.message() + ")";
  fail(denial_.code(), denied + ", and the other addresses do not answer: " + why);
}

void Dialer::fail(Code code, const std::string& why) {
  stop();
  events_.on_dial_failed(Status(code, "cannot connect to " + context_.describe(peer_) + ": " + why, peer_));
}

void Dialer::stop() {
  context_.timers.cancel(*this);
  drop();
  phase_ = Phase::pausing;
}

void Dialer::drop() {
  unwatch();
  connection_.close();
}

void Dialer::unwatch() {
  if (watching_) context_.unwatch(connection_.descriptor());
  watching_ = false;
}

}  // namespace tutti::meeting
