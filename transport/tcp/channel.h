#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "transport/stream/stream_channel.h"
#include "transport/tcp/connector.h"
#include "transport/tcp/context.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/pipe.h"
#include "transport/tcp/stripe.h"

namespace tutti::tcp {

// A tcp `Channel` moves frames over one socket. Where that is faster, it spreads the payloads of large
// messages over several sockets. The calling thread writes frames as long as the socket takes them. Frames
// are read when the driver reports that the socket is readable. Large payloads are read directly into the
// receive's memory.
class Channel final : public StreamChannel,
                      public DescriptorHandler,
                      public ConnectorEvents,
                      public StripeEvents {
 public:
  Channel(Context& context, int peer, std::chrono::nanoseconds connect_timeout);
  ~Channel() override;

  // Returns the answer to a peer that has connected and said hello. After `welcome`, `attach` takes the
  // connection.
  Verdict judge_incoming() const;
  void attach(Pipe pipe);
  // These do the same for a stripe (stripe.h).
  Verdict judge_stripe(std::uint8_t number) const;
  void attach_stripe(std::uint8_t number, Pipe pipe);
  // Reads without first asking the kernel whether there is anything to read. Returns whether anything
  // arrived.
  bool poll();
  // Makes the kernel send the frames that coalescing holds back.
  void send_at_once();

 private:
  // At most this many frames leave together. Several small ones then cost one system call.
  static constexpr std::size_t max_held = 8;

  void kick() override;
  void close_pipe() override;
  void on_ready(std::uint32_t events) override;
  void on_connected(Pipe pipe) override { attach(std::move(pipe)); }
  void on_connect_failed(const Status& why) override { pipe_failed(why); }

  void on_stripe_written(OutgoingFrame& frame) override;
  void on_stripe_room() override;
  void on_stripe_readable(IncomingStripe& stripe) override;
  void on_stripe_lost(const std::string& why) override;

  void start_connecting();
  std::size_t socket_count(const Address& theirs) const;
  void open_stripes();
  // Gives a fragment to the stripe whose turn it is, if the stripe has room.
  void share_out(OutgoingFrame& frame);
  void write_stripes();
  void read_stripes();
  void read_stripe(IncomingStripe& stripe);
  void write_frames();
  void hold_frames();
  // The next two functions implement coalescing, which channel.cc explains.
  void count(OutgoingFrame& frame);
  void coalesce();
  std::size_t write_held(int& error);
  void release_written(std::size_t bytes);
  void want_writable();

  bool read_frames();
  std::size_t read_once(int& error, std::size_t& room);
  void take(std::span<const std::byte> bytes);
  Status lost(const std::string& why) const;

  Context& context_;
  const std::chrono::nanoseconds connect_timeout_;
  std::unique_ptr<Connector> connector_;  // while this rank is connecting
  Pipe pipe_;
  bool open_ = false;

  std::array<OutgoingFrame*, max_held> held_{};
  std::size_t held_count_ = 0;
  bool writing_ = false;         // whether write_frames() is on the stack already
  bool waits_writable_ = false;  // the socket is full; the driver reports when it is writable
  int write_error_ = 0;
  std::uint64_t counted_at_ = 0;  // the value of `Channels::polls` when frames were last taken to be written
  unsigned in_a_row_ = 0;         // small messages since `counted_at_`
  bool asked_ = false;  // whether the last frame that left since `counted_at_` asks for an acknowledgement
  bool coalescing_ = false;
  bool acknowledges_ = false;  // whether the last frame that arrived asks for an acknowledgement

  // These bytes are left over from the last read: a header or an element that is not complete yet.
  std::array<std::byte, frame_header_bytes> rest_{};
  std::size_t rest_bytes_ = 0;
  std::vector<std::unique_ptr<OutgoingStripe>> outgoing_;  // empty until the first large message
  std::vector<std::unique_ptr<IncomingStripe>> incoming_;
  bool stripes_opened_ = false;
  std::size_t turn_ = 0;  // the stripe whose turn it is to take a fragment; 0 is the first connection

  bool bulk_ = false;  // the last read filled a large payload, so a fragment's header is likely to follow
};

}  // namespace tutti::tcp
