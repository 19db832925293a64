#pragma once

#include <chrono>
#include <optional>

#include "rendezvous/store/forwarding_store.h"

namespace tutti::rendezvous {

// `MeetingStore` is the store as a meeting asks it: once the time for the meeting is over, requests may still
// begin for a moment, and after that none does. So a store that answers slowly delays the end of a meeting by
// one answer only, however many requests were to follow.
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
