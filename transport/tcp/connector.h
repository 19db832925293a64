#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "transport/meeting/dialer.h"
#include "transport/tcp/address.h"
#include "transport/tcp/context.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/pipe.h"

namespace tutti::tcp {

class ConnectorEvents;

// A `Connector` tries to connect to one peer until the peer accepts or refuses, or the deadline has passed.
// The destructor ends the attempts.
class Connector final : public DescriptorHandler, public meeting::DialerEvents {
 public:
  Connector(Context& context, int peer, Address address, std::chrono::nanoseconds timeout,
            ConnectorEvents& events);
  ~Connector() override;

  void start() { dialer_.start(); }
  // Starts connecting the stripe with that number, from the address `local`.
  void start_stripe(std::uint8_t number, const SocketAddress& local);
  // Returns whether an attempt is under way, so that the peer may still answer `welcome`. This is false
  // between two attempts.
  bool in_progress() const { return dialer_.in_progress(); }

 private:
  void on_ready(std::uint32_t events) override;
  Descriptor dial(const SocketAddress& endpoint, int& error) override;
  security::Guard on_reached(int descriptor, Deadline limit) override;
  void on_passed(Pipe connection) override;
  void on_dial_failed(const Status& why) override;

  int greet();
  std::optional<Status> refusal_by_guard() const;
  void judge(Verdict verdict);
  void attempt_failed(int error);
  void drop_pipe();

  Context& context_;
  const int peer_;
  const Address address_;
  ConnectorEvents& events_;
  meeting::Dialer dialer_;

  std::uint8_t stripe_ = 0;
  std::optional<SocketAddress> local_;  // where to connect from, if the kernel permits it
  Pipe pipe_;                           // once the guard is passed
  bool watching_ = false;
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
