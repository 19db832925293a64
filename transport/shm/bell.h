#pragma once

#include <cstdint>
#include <memory>

#include <tutti/status.h>

#include "core/descriptor.h"
#include "transport/driver/driver.h"

namespace tutti::shm {

// A `BellRope` rings a peer's bell, or our own: it is one end of a pair of sockets whose other end its driver
// watches. It is a socket because each call can ask a socket not to wait. For a pipe or an eventfd, not
// waiting is a flag that is shared by all processes that have it, so that any of them could make us wait for
// ever.
class BellRope {
 public:
  // Returns null if the descriptor is not such a socket: a peer may hand over a full pipe, for example.
  static std::shared_ptr<const BellRope> from(Descriptor socket);
  // Wakes the peer's driver if it sleeps. The driver may hear several rings as one. Any thread may call it.
  void ring() const;
  int descriptor() const { return socket_.get(); }

 private:
  explicit BellRope(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
};
using SharedRope = std::shared_ptr<const BellRope>;

// A `Bell` wakes our driver. A ring carries no data: the pollables, which are polled after it, find out what
// has happened.
class Bell final : public DescriptorHandler {
 public:
  Status create();
  const SharedRope& rope() const { return rope_; }
  // The descriptor to watch.
  int descriptor() const { return ear_.get(); }

  void on_ready(std::uint32_t events) override;

 private:
  SharedRope rope_;
  Descriptor ear_;  // ours alone: no other process can take rings out of it
};

}  // namespace tutti::shm
