#pragma once

#include <memory>

#include "transport/inproc/transport.h"
#include "transport/stream/stream_channel.h"

namespace tutti::inproc {

// A `Channel` here moves frames through the queues that two ranks of one process share.
class Channel final : public StreamChannel {
 public:
  Channel(int peer, Transport& transport, TransportOwner& owner, const MessageLimits& limits,
          Deadline connect_deadline);
  ~Channel() override;

  // The peer has made a wire to us; the same one if we made it at the same time.
  void attach(std::shared_ptr<Wire> wire);
  // `pending`: receives what is there and sends what has room. Else only looks at the clock.
  void pump(bool pending);
  // Until when the peer must have accepted; never once it has.
  Deadline connect_deadline() const;

 protected:
  void kick() override;
  void close_pipe() override;

 private:
  int side() const { return owner().rank() < peer() ? 0 : 1; }
  std::string describe() const { return owner().peer(peer()).describe(); }
  void read();
  void write();
  bool receive(const Packet& packet);

  Transport& transport_;
  Deadline connect_deadline_;
  std::shared_ptr<Wire> wire_;
  OutgoingFrame* frame_ = nullptr;  // taken, but there was no room
  Packet packet_;                   // memory for `read`
  bool writing_ = false;
  bool reading_ = false;
  bool closed_ = false;
};

}  // namespace tutti::inproc
