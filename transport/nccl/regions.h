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

// `Regions` are the regions of device memory that one rank has registered. Each session registers them with
// its communicator. Any thread may call.
class Regions {
 public:
  // A `User` is a session.
  class User {
   public:
    // Deregisters regions that have been removed, unless the session is busy. Then it does so before its next
    // group.
    virtual void regions_removed() = 0;

   protected:
    ~User() = default;
  };
  struct Region {
    std::uint64_t number;  // never used again, so a later region in the same place can be told from it
    std::span<std::byte> memory;
  };

  // The region is removed when the result is destroyed. `regions` must not be null.
  static std::unique_ptr<RegisteredMemory> add(std::shared_ptr<Regions> regions, std::span<std::byte> memory);
  // Becomes another number whenever a region is added or removed.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  std::vector<Region> all() const;

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
