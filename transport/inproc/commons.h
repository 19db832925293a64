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

// `Commons` is memory that a group of ranks asks for. It is granted once all of them have asked.
class Commons {
 public:
  Commons(std::uint64_t bytes, std::vector<std::shared_ptr<Mailbox>> boxes);
  std::span<std::byte> memory() const { return memory_; }
  Mailbox& box(int member) { return *boxes_[static_cast<std::size_t>(member)]; }

  // A member asks; all of them are notified when the last one has.
  void join();
  // Refuses the memory to all of them: a member wants another size, or has waited too long.
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
