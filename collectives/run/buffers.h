#pragma once

#include <array>
#include <cstddef>

#include "collectives/schedule/schedule.h"

namespace tutti {

// `Buffers` has the addresses of a schedule's buffers in one run of the schedule.
class Buffers {
 public:
  Buffers() = default;
  Buffers(const std::byte* input, std::byte* output, std::byte* scratch, std::byte* window)
      // The cast is safe: no step writes to the input, unless it is also the output.
      : first_bytes_{const_cast<std::byte*>(input), output, scratch, window} {}

  // Returns the address `offset` bytes into a buffer of this rank.
  std::byte* at(BufferId buffer, std::size_t offset) const {
    return first_bytes_[static_cast<std::size_t>(buffer)] + offset;
  }

 private:
  std::array<std::byte*, 4> first_bytes_ = {};
};

}  // namespace tutti
