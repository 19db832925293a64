#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tutti/status.h>

#include "transport/inproc/mailbox.h"
#include "transport/shared_segment.h"

namespace tutti::inproc {

// A `Commons` is memory that a group of ranks shares. The memory is granted once all of these ranks have
// asked for it. Its pages are allocated when they are first touched.
class Commons {
 public:
  Commons(std::uint64_t bytes, const std::vector<std::shared_ptr<Mailbox>>& boxes);
  ~Commons();
  Commons(const Commons&) = delete;
  Commons& operator=(const Commons&) = delete;
  std::span<std::byte> memory() const { return memory_; }
  const SharedBell& bell(int member) const { return bells_[static_cast<std::size_t>(member)]; }

  // Records that a member has asked. All members are notified once the last one has asked.
  void join();
  // Refuses the memory to all members, because one of them wants another size, has waited too long or has
  // cancelled its request. Only the first reason counts. Does nothing if all members have asked already.
  void refuse(const Status& why);
  // Returns ok if all members have asked, or why the memory was refused. Until then, returns nothing.
  std::optional<Status> outcome() const;

 private:
  void notify_all();

  struct Bell final : SharedBell {
    explicit Bell(std::shared_ptr<Mailbox> of) : box(std::move(of)) {}
    void ring() const override { box->notify(); }
    std::shared_ptr<Mailbox> box;
  };

  const std::vector<Bell> bells_;
  std::span<std::byte> memory_;
  mutable std::mutex mutex_;
  std::size_t joined_ = 0;
  Status refused_;  // ok if the memory has not been refused
};

}  // namespace tutti::inproc
