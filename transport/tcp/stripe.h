#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "transport/stream/stream_channel.h"
#include "transport/tcp/connector.h"
#include "transport/tcp/context.h"
#include "transport/tcp/pipe.h"

namespace tutti::tcp {

class StripeEvents;

// An `OutgoingStripe` is an additional connection of a channel, which carries payloads of large messages to
// the peer. It is used once it is open. If it cannot be made, the other connections do its work.
class OutgoingStripe final : public DescriptorHandler, public ConnectorEvents {
 public:
  OutgoingStripe(Context& context, int peer, std::uint8_t number, StripeEvents& events);
  ~OutgoingStripe() override;

  // Connects from one of this rank's addresses to one of the peer's. The number of this stripe selects the
  // two addresses.
  void connect(const Address& address, std::chrono::nanoseconds timeout);
  // Closes at once, without an event, and drops the frames that it holds.
  void close();
  bool has_room() const { return open_ && count_ < held_.size(); }
  void add(OutgoingFrame& frame) { held_[count_++] = &frame; }
  void write();

  void on_ready(std::uint32_t events) override;
  void on_connected(Pipe pipe) override;
  void on_connect_failed(const Status& why) override;

 private:
  Context& context_;
  const int peer_;
  const std::uint8_t number_;
  StripeEvents& events_;
  std::unique_ptr<Connector> connector_;
  Pipe pipe_;
  bool open_ = false;
  bool full_ = false;     // whether it waits until the socket is writable
  bool writing_ = false;  // whether write() is on the stack already
  std::array<OutgoingFrame*, 2> held_{};
  std::size_t count_ = 0;
};

// `StripeEvents` is how a stripe notifies its channel.
class StripeEvents {
 public:
  virtual ~StripeEvents() = default;
  // The payload of a frame has left.
  virtual void on_stripe_written(OutgoingFrame& frame) = 0;
  // The stripe has connected, or has room for payloads again.
  virtual void on_stripe_room() = 0;
  virtual void on_stripe_readable(class IncomingStripe& stripe) = 0;
  // The stripe has closed itself.
  virtual void on_stripe_lost(const std::string& why) = 0;
};

// An `IncomingStripe` is the receiving end of an `OutgoingStripe`.
class IncomingStripe final : public DescriptorHandler {
 public:
  IncomingStripe(Context& context, std::uint8_t number, StripeEvents& events, Pipe pipe);
  ~IncomingStripe() override;

  Status watch();
  void close();
  // Returns whether this stripe holds bytes that the driver will not announce again.
  bool has_pending() const { return pipe_.has_pending(); }
  // Reads bytes into `place`, and returns how many. Zero means that there are none, or that the connection
  // has ended and the channel was notified.
  std::size_t read(std::span<std::byte> place);
  // Stops watching for bytes if `on` is set, and otherwise starts again. A payload must not be read before
  // its header has arrived. Until then its bytes must not wake the driver again and again.
  void pause(bool on);
  std::uint8_t number() const { return number_; }

  // `keep` stores the first bytes of an incomplete element, which cannot be used yet. `restore` copies them
  // to `to`, and returns how many there are.
  void keep(std::span<const std::byte> bytes);
  std::size_t restore(std::span<std::byte> to) const;

  void on_ready(std::uint32_t events) override;

 private:
  Context& context_;
  const std::uint8_t number_;
  StripeEvents& events_;
  Pipe pipe_;
  bool watching_ = false;
  bool paused_ = false;
  std::array<std::byte, 64> kept_{};
  std::size_t kept_bytes_ = 0;
};

}  // namespace tutti::tcp
