#pragma once

#include <cstdint>
#include <memory>

#include <tutti/status.h>

#include "core/descriptor.h"
#include "transport/driver/driver.h"
#include "transport/shared_segment.h"

namespace tutti::shm {

// A `BellRope` rings the bell of a peer, or of this rank. It is one end of a pair of sockets; the driver of
// the woken rank watches the other end. The rope is a socket because a single call on a socket can be made
// non-blocking. For a pipe or an eventfd, O_NONBLOCK is a flag that all processes with the descriptor share.
// So any of them could clear the flag, and make this rank wait forever.
class BellRope final : public SharedBell {
 public:
  // Returns null if the descriptor is not such a socket: a peer may hand over a full pipe, for example.
  static std::shared_ptr<const BellRope> from(Descriptor socket);
  // Wakes the peer's driver if it sleeps. If many rings wait for the peer already, this ring is dropped,
  // since the peer wakes in any case. Any thread may call this function.
  void ring() const override;
  int descriptor() const { return socket_.get(); }

 private:
  explicit BellRope(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
};
using SharedRope = std::shared_ptr<const BellRope>;

// A `Bell` wakes this rank's driver. A ring carries no other information: the driver then polls its
// pollables, which find out what has happened.
class Bell final : public DescriptorHandler {
 public:
  Status create();
  const SharedRope& rope() const { return rope_; }
  // Returns the descriptor to watch.
  int descriptor() const { return ear_.get(); }

  void on_ready(std::uint32_t events) override;

 private:
  SharedRope rope_;
  Descriptor ear_;  // not shared with other processes, so none of them can take rings out of it
};

}  // namespace tutti::shm
