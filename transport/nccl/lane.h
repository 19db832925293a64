#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <tutti/status.h>

#include "transport/cuda/device.h"

namespace tutti::nccl {

// A `Lane` lets the sessions of this process share a device, whichever worlds they belong to. The sessions
// issue their groups one after the other, in the order in which the caller has made the calls. The reason is
// that groups of two sessions can wait for each other on the device. If two ranks issued such groups in
// different orders, neither group would end.
class Lane {
 public:
  // Returns the lane of a device. All callers that pass the same `host` and `device` share the lane. `host`
  // must be the id by which NCCL tells hosts apart. NCCL never accepts two ranks with the same host and
  // device in one communicator. So the ranks of one communicator never share a lane. If they did, they would
  // block each other, since a group can be launched only when the other ranks of its communicator launch
  // theirs.
  static Result<std::shared_ptr<Lane>> of(const cuda::Api& api, int device, const std::string& host);

  // A `User` is a session. The lane calls it with `mutex` held.
  class User {
   public:
    // Issues the user's oldest group that waits. Returns false if the group is not in the stream yet. In that
    // case the lane waits until the user calls `launched` or `leave`.
    virtual bool launch() = 0;

   protected:
    ~User() = default;
  };

  const cuda::Device& device() const { return *device_; }
  // The sessions of the device call NCCL with this lock held. It also guards their state.
  std::mutex& mutex() { return mutex_; }

  // --- `mutex` must be held ---

  // Lets `user` launch a group as soon as its turn comes.
  void queue(User& user);
  // Returns whether the lane waits for this user, because its `launch` returned false.
  bool waits_for(const User& user) const { return launches_ == &user; }
  // Lets the lane go on if it waits for this user. The user's group is now in the stream, or never will be.
  void launched(const User& user);
  // Gives up all turns of `user`.
  void leave(User& user);

 private:
  explicit Lane(std::unique_ptr<cuda::Device> device) : device_(std::move(device)) {}
  void advance();

  const std::unique_ptr<cuda::Device> device_;
  std::mutex mutex_;
  std::deque<User*> turns_;   // one for each group that waits
  User* launches_ = nullptr;  // the user that the lane waits for
};

}  // namespace tutti::nccl
