#pragma once

#include <cstdint>
#include <memory>

#include <tutti/core/status.h>
#include <tutti/transport/driver.h>
#include <tutti/transport/shm/descriptor.h>

namespace tutti::shm {

// A peer's bell (or our own): an eventfd that its driver watches.
class BellRope {
 public:
  explicit BellRope(Descriptor eventfd) : eventfd_(std::move(eventfd)) {}
  // Any thread. Wakes the peer's driver if it sleeps; rings that it has not heard yet are one.
  void ring() const;
  int descriptor() const { return eventfd_.get(); }

 private:
  Descriptor eventfd_;
};
using SharedRope = std::shared_ptr<const BellRope>;

// Our bell. What the ring means is for the pollables to find out, which are polled after it.
class Bell final : public DescriptorHandler {
 public:
  Status create();
  const SharedRope& rope() const { return rope_; }

  void on_ready(std::uint32_t events) override;

 private:
  SharedRope rope_;
};

}  // namespace tutti::shm
