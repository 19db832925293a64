#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/free_delete.h"
#include "transport/inproc/mailbox.h"

namespace tutti::inproc {

// A `Commons` is memory that a group of ranks shares. It is granted once all of them have asked for it.
class Commons {
 public:
  Commons(std::uint64_t bytes, std::vector<std::shared_ptr<Mailbox>> boxes);
  std::span<std::byte> memory() const { return memory_; }
  Mailbox& box(int member) { return *boxes_[static_cast<std::size_t>(member)]; }

  // Records that a member has asked. All members are notified once the last one has asked.
  void join();
  // Refuses the memory to all members, because one of them wants another size or has waited too long.
  void refuse();
  enum class Outcome { wait, granted, refused };
  Outcome outcome() const;

 private:
  void notify_all();

  const std::vector<std::shared_ptr<Mailbox>> boxes_;
  AlignedBytes owned_;
  std::span<std::byte> memory_;
  mutable std::mutex mutex_;
  std::size_t joined_ = 0;
  bool refused_ = false;
};

}  // namespace tutti::inproc
