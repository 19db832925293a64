#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "transport/driver/driver.h"

namespace tutti {

// `ActiveGroups` polls those communicators of a world that have something to do. It leaves all others alone,
// so that an idle communicator costs nothing.
//
// Only the driving thread calls these functions, except where a comment says otherwise.
class ActiveGroups final : public Pollable {
 public:
  // A `Member` is a communicator. Each call of `stir` makes it active: it is polled until it rests.
  class Member : public Pollable {
   public:
    explicit Member(ActiveGroups& groups) : groups_(groups) {}
    void stir() {
      if (!active_) groups_.activate(*this);
    }

   private:
    friend class ActiveGroups;
    // Returns true if nothing has happened since the last call of `rest`, and polling is useless until the
    // next call of `stir`.
    virtual bool rest() = 0;

    ActiveGroups& groups_;
    bool active_ = false;
    std::uint32_t polls_ = 0;
  };

  // The constructor and the destructor wait for the baton (see Driver).
  explicit ActiveGroups(Driver& driver);
  ~ActiveGroups() override;
  ActiveGroups(const ActiveGroups&) = delete;
  ActiveGroups& operator=(const ActiveGroups&) = delete;

  // Adds a member, and stirs it.
  void add(Member& member);
  void remove(Member& member);
  // Stirs all members. Any thread may call it. The caller must then wake the driver.
  void stir_all() { all_stirred_.store(true, std::memory_order_release); }

  bool poll() override;
  bool prepare_sleep() override;
  void cancel_sleep() override;
  bool expects_memory() const override;
  Deadline next_deadline() const override;

 private:
  void activate(Member& member);

  Driver& driver_;
  std::atomic<bool> all_stirred_{false};
  std::vector<Member*> all_;
  std::vector<Member*> active_;  // an entry is null if its member rests or was removed
  bool any_gone_ = false;
};

}  // namespace tutti
