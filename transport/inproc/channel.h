#pragma once

#include <memory>

#include <tutti/deadline.h>

#include "transport/inproc/context.h"
#include "transport/inproc/pipe.h"
#include "transport/stream/stream_channel.h"

namespace tutti::inproc {

// A `Channel` here moves frames through the queues that two ranks of one process share.
class Channel final : public StreamChannel {
 public:
  Channel(Context& context, int peer, Deadline connect_deadline);
  ~Channel() override;

  // The peer has made this pipe to us. It equals our own pipe if both made one at the same time.
  void attach(std::shared_ptr<Pipe> pipe);
  // `pending`: receives all frames that are there and sends those that have room. Otherwise it only looks at
  // the clock.
  void pump(bool pending);
  // The deadline for the peer to accept; never once it has.
  Deadline connect_deadline() const;

 protected:
  void kick() override;
  void close_pipe() override;

 private:
  int side() const { return owner().rank() < peer() ? 0 : 1; }
  void read();
  void write();
  bool receive(const Packet& packet);

  Context& context_;
  Deadline connect_deadline_;
  std::shared_ptr<Pipe> pipe_;
  OutgoingFrame* frame_ = nullptr;  // taken, but there was no room
  Packet packet_;                   // memory for `read`
  bool writing_ = false;
  bool reading_ = false;
  bool closed_ = false;
};

}  // namespace tutti::inproc
