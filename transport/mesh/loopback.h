#pragma once

#include "transport/stream/stream_channel.h"

namespace tutti {

// A `LoopbackChannel` connects a rank to itself: every frame arrives within the call that sends it.
class LoopbackChannel final : public StreamChannel {
 public:
  LoopbackChannel(TransportOwner& owner, const MessageLimits& limits)
      : StreamChannel(owner.rank(), owner, limits) {}

 protected:
  void kick() override;
  void close_pipe() override { closed_ = true; }

 private:
  bool closed_ = false;
};

}  // namespace tutti
