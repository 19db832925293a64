#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "transport/registered_memory.h"

namespace tutti::nccl {

// `Regions` are the regions of device memory that one rank has registered. Each session registers the regions
// of its device with its communicator. Any thread may call.
class Regions {
 public:
  // A `User` is a session.
  class User {
   public:
    // Deregisters regions that have been removed. If NCCL is busy with a group, the user does so when NCCL
    // has put the group into its stream.
    virtual void regions_removed() = 0;

   protected:
    ~User() = default;
  };
  struct Region {
    std::uint64_t number;  // never used again: a later region in the same place has another number
    int device;            // the device of the memory
    std::span<std::byte> memory;
  };

  // The region is removed when the result is destroyed. `regions` must not be null.
  static std::unique_ptr<RegisteredMemory> add(std::shared_ptr<Regions> regions, int device,
                                               std::span<std::byte> memory);
  // Returns a number that changes whenever a region is added or removed.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // Returns the regions of a device.
  std::vector<Region> of(int device) const;

  void attach(User& user);
  // When this returns, `user` is no longer called.
  void detach(User& user);

 private:
  class Held;
  void remove(std::uint64_t number);

  std::atomic<std::uint64_t> version_{0};
  mutable std::mutex mutex_;  // protects `all_`
  std::vector<Region> all_;
  std::mutex users_mutex_;  // protects `users_`; held while a user is called
  std::set<User*> users_;
};

}  // namespace tutti::nccl
