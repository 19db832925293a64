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

class SideEvents;

// An `OutgoingSide` is a further connection of a channel, for payloads of our large messages. It is used once
// it is open; if it cannot be made, the other connections do its work.
class OutgoingSide final : public DescriptorHandler, public ConnectorEvents {
 public:
  OutgoingSide(Context& context, int peer, std::uint8_t number, SideEvents& events);
  ~OutgoingSide() override;

  // Connects from our address to the peer's; the number of this side selects both.
  void connect(const Address& address, std::chrono::nanoseconds timeout);
  // Closes at once, without an event; frames that it holds are void.
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
  SideEvents& events_;
  std::unique_ptr<Connector> connector_;
  Pipe pipe_;
  bool open_ = false;
  bool full_ = false;     // waits until the socket is writable
  bool writing_ = false;  // on the stack already
  std::array<OutgoingFrame*, 2> held_{};
  std::size_t count_ = 0;
};

// `SideEvents` is what a side connection tells its channel.
class SideEvents {
 public:
  virtual ~SideEvents() = default;
  // The payload of a frame has left.
  virtual void on_side_written(OutgoingFrame& frame) = 0;
  // The side takes payloads (again), or never will.
  virtual void on_side_room() = 0;
  virtual void on_side_readable(class IncomingSide& side) = 0;
  // The side has closed itself.
  virtual void on_side_lost(const std::string& why) = 0;
};

// An `IncomingSide` is the receiving end of an `OutgoingSide`.
class IncomingSide final : public DescriptorHandler {
 public:
  IncomingSide(Context& context, std::uint8_t number, SideEvents& events, Pipe pipe);
  ~IncomingSide() override;

  Status watch();
  void close();
  // Returns whether it holds bytes that the driver will not announce again.
  bool has_pending() const { return pipe_.has_pending(); }
  // Reads at most that many bytes. Returns zero if there is nothing, or if the connection has ended; then the
  // channel has been told.
  std::size_t read(std::span<std::byte> place);
  // Stops watching for bytes, or goes on: payloads that no header has announced cannot be taken, and must not
  // keep the driver busy.
  void pause(bool on);
  std::uint8_t number() const { return number_; }

  // Keeps bytes that could not be used yet: fewer than an element has.
  void keep(std::span<const std::byte> bytes);
  std::size_t restore(std::span<std::byte> to) const;

  void on_ready(std::uint32_t events) override;

 private:
  Context& context_;
  const std::uint8_t number_;
  SideEvents& events_;
  Pipe pipe_;
  bool watching_ = false;
  bool paused_ = false;
  std::array<std::byte, 64> kept_{};
  std::size_t kept_bytes_ = 0;
};

}  // namespace tutti::tcp
