#pragma once

#include <memory>

#include <tutti/deadline.h>

#include "transport/inproc/context.h"
#include "transport/inproc/pipe.h"
#include "transport/stream/stream_channel.h"

namespace tutti::inproc {

// An inproc `Channel` moves frames through the queues that two ranks of one process share.
class Channel final : public StreamChannel {
 public:
  Channel(Context& context, int peer, Deadline connect_deadline);
  ~Channel() override;

  // Attaches the pipe that the peer has made to connect with this rank. If both ranks connected at the same
  // time, this rank already has that pipe.
  void attach(std::shared_ptr<Pipe> pipe);
  // If `pending` is set, receives all frames that have arrived, and sends waiting frames as long as there is
  // room. Otherwise only checks whether the connect deadline has passed.
  void pump(bool pending);
  // Returns the time by which the peer must accept the pipe, or never if no pipe waits for that.
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
  OutgoingFrame* frame_ = nullptr;  // the frame that waits for room in the peer's queue
  Packet packet_;                   // memory for `read`
  bool writing_ = false;
  bool reading_ = false;
  bool closed_ = false;
};

}  // namespace tutti::inproc
