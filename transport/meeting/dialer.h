#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "core/backoff.h"
#include "transport/meeting/address_text.h"
#include "transport/meeting/connection.h"
#include "transport/transport_context.h"

namespace tutti::meeting {

class DialerEvents;

struct DialerOptions {
  std::chrono::nanoseconds timeout;  // of all attempts together
  std::chrono::nanoseconds step;     // for connecting, and then again for passing the guard
};

// A `Dialer` connects to one peer over TCP, and passes the guard. It tries one endpoint of the peer after the
// other, round after round, until a connection has passed the guard or the time is up. The
// destructor ends the attempts.
//
// A peer listens before its address is known. So if it refuses connections, it has probably ended, and the
// attempts stop after a few rounds. They also stop after a few rounds if the network rejects every attempt. A
// process at an endpoint may deny a connection, for example because it has another token. It need not be the
// peer: the same address may belong to another host of this rank's network. So the attempts end at once only
// if all endpoints deny. If descriptors or local ports run out, the attempts continue until the deadline,
// since a later round may succeed.
class Dialer final : public DescriptorHandler, public Timer {
 public:
  Dialer(TransportContext& context, int peer, Endpoints endpoints, const DialerOptions& options,
         DialerEvents& events);
  ~Dialer() override { stop(); }

  void start() { try_next(); }
  // Returns whether an attempt is under way. This is false between two attempts and after the last one. A
  // connection that has passed the guard counts as an attempt under way.
  bool in_progress() const { return phase_ != Phase::pausing; }

  // The owner calls one of these functions if a connection that has passed the guard cannot be used after
  // all. The owner closes that connection first. `attempt_failed` counts the attempt as failed with this
  // errno, and goes on to the next endpoint. EPIPE means that the peer has closed the connection.
  void attempt_failed(int error);
  // Does the same if the process at the endpoint denies a connection to this rank.
  void attempt_denied(const Status& why);
  // Makes the next attempt after this pause, at the same endpoint.
  void retry_after(std::chrono::milliseconds pause);
  // Ends the attempts, and reports that they have failed.
  void fail(Code code, const std::string& why);
  // Ends the attempts without a report.
  void stop();

  void on_ready(std::uint32_t events) override;
  void on_timer() override;

 private:
  enum class Phase { pausing, connecting, proving, passed };  // `pausing` also after the last attempt

  void try_next();
  void reached();
  void prove();
  void passed();
  void guard_failed();
  void watch_for(std::uint32_t events);
  Deadline step_limit() const { return earlier(deadline_, Deadline::after(step_)); }
  void try_other();
  void round_failed();
  void out_of_time();
  void give_up(Code code, const std::string& why);
  void unwatch();
  void drop();

  TransportContext& context_;
  const int peer_;
  const Endpoints endpoints_;
  const Deadline deadline_;
  const std::chrono::nanoseconds step_;
  DialerEvents& events_;
  Phase phase_ = Phase::pausing;
  Connection connection_;  // until it has passed the guard
  bool watching_ = false;
  std::size_t next_ = 0;  // the endpoint to try
  std::size_t refused_in_round_ = 0;
  int refused_rounds_ = 0;
  std::size_t rejected_in_round_ = 0;
  int rejected_rounds_ = 0;
  Backoff backoff_{std::chrono::milliseconds(10), std::chrono::milliseconds(1000)};  // between rounds
  int last_error_ = 0;
  std::size_t denied_in_round_ = 0;
  Status denial_;              // the last one; ok if no endpoint has denied a connection
  std::size_t denied_at_ = 0;  // the endpoint of `denial_`
};

// `DialerEvents` is the part of connecting that differs between transports. It may destroy the dialer during
// `on_passed` and `on_dial_failed`.
class DialerEvents {
 public:
  virtual ~DialerEvents() = default;
  // Begins to connect to one of the endpoints, as `begin_connect` does (socket.h).
  virtual Descriptor dial(const SocketAddress& endpoint, int& error) = 0;
  // The socket is connected. Returns the guard that both sides must pass before `limit`.
  virtual security::Guard on_reached(int descriptor, Deadline limit) = 0;
  // Both sides have passed the guard. Until the dialer is stopped, it still reports a failure when the
  // deadline passes.
  virtual void on_passed(Connection connection) = 0;
  // The attempts have ended. The status says why, and blames the peer.
  virtual void on_dial_failed(const Status& why) = 0;
};

}  // namespace tutti::meeting
