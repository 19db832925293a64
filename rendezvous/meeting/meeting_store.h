#pragma once

#include <chrono>
#include <optional>

#include "rendezvous/store/forwarding_store.h"

namespace tutti::rendezvous {

// `MeetingStore` is the store with a meeting's time limit: when the deadline has passed, requests may still
// begin for a moment, and then no more. So a slow store delays the end of a meeting by one answer only,
// however many requests would follow.
class MeetingStore final : public ForwardingStore {
 public:
  MeetingStore(Store& store, Deadline deadline) : ForwardingStore(store), deadline_(deadline) {}

  // The limit of a request that tells others how the meeting has ended, or that clears up after it. The first
  // call fixes when the last such request may begin.
  Deadline closing();

 protected:
  Status admit() const override;

 private:
  const Deadline deadline_;
  std::optional<Deadline> end_;
};

}  // namespace tutti::rendezvous
