#pragma once

#include <array>
#include <vector>

#include "core/backoff.h"
#include "transport/tcp/address.h"
#include "transport/tcp/context.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/pipe.h"
#include "transport/tcp/socket.h"

namespace tutti::tcp {

class ConnectorEvents;

// A `Connector` tries to connect to one peer, address by address, round after round, until the peer answers
// `welcome` or the deadline has passed. The destructor ends the attempts.
//
// A peer listens before its address is known. So if it refuses connections, it has probably ended, and the
// attempts stop after a few rounds. If descriptors or local ports run out, the attempts continue until the
// deadline, since a later round may succeed.
class Connector final : public DescriptorHandler, public Timer {
 public:
  Connector(Context& context, int peer, Address address, std::chrono::nanoseconds timeout,
            ConnectorEvents& events);
  ~Connector() override;

  void start();
  // Starts connecting the stripe with that number, from the address `local`.
  void start_stripe(std::uint8_t number, const asio::ip::address& local);
  // Returns whether an attempt is under way, so that the peer may still answer `welcome`. This is false
  // between two attempts.
  bool in_progress() const { return phase_ != Phase::pausing; }

  void on_ready(std::uint32_t events) override;
  void on_timer() override;

 private:
  enum class Phase { pausing, connecting, proving, greeting };

  void try_next();
  void connected();
  void prove();
  void guard_failed();
  void watch_for(std::uint32_t events);
  void greet();
  void read_answer();
  void judge(Verdict verdict);
  void attempt_failed(const asio::error_code& error);
  void round_failed();
  void pause(std::chrono::milliseconds delay);
  void drop_socket();
  void fail(Code code, const std::string& why);

  Context& context_;
  const int peer_;
  const Address address_;
  const Deadline deadline_;
  const std::chrono::nanoseconds attempt_timeout_;
  ConnectorEvents& events_;

  std::uint8_t stripe_ = 0;
  asio::ip::address local_;
  Phase phase_ = Phase::pausing;
  Pipe pipe_;
  bool watching_ = false;
  std::size_t next_endpoint_ = 0;
  std::size_t refused_in_round_ = 0;
  int refused_rounds_ = 0;
  std::size_t rejected_in_round_ = 0;
  int rejected_rounds_ = 0;
  Backoff backoff_{std::chrono::milliseconds(10), std::chrono::milliseconds(1000)};  // between rounds
  asio::error_code last_error_;
  std::size_t have_ = 0;
  std::array<std::byte, answer_bytes> answer_{};
};

// `ConnectorEvents` is notified once, when the connector has succeeded or has given up. It may destroy the
// connector during the call.
class ConnectorEvents {
 public:
  virtual ~ConnectorEvents() = default;
  virtual void on_connected(Pipe pipe) = 0;
  virtual void on_connect_failed(const Status& why) = 0;
};

}  // namespace tutti::tcp
