#pragma once

#include <chrono>
#include <optional>

#include "rendezvous/store/forwarding_store.h"

namespace tutti::rendezvous {

// `MeetingStore` is a store with a meeting's time limit. Once `closing` has been called, requests may begin
// until shortly after the deadline, and fail at once after that. So a slow store delays the end of a meeting
// by one answer at most.
class MeetingStore final : public ForwardingStore {
 public:
  MeetingStore(Store& store, Deadline deadline) : ForwardingStore(store), deadline_(deadline) {}

  // Returns the time limit of a request that tells others how the meeting has ended, or that cleans up after
  // it. The first call fixes when the last such request may begin.
  Deadline closing();

 protected:
  Status admit() const override;

 private:
  const Deadline deadline_;
  std::optional<Deadline> end_;
};

}  // namespace tutti::rendezvous
