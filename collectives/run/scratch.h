#pragma once

#include <cstddef>

#include <tutti/status.h>

#include "core/free_delete.h"

namespace tutti {

// `Scratch` is the memory that a schedule needs in addition to the caller's buffers. It only grows, so that
// repeated collectives allocate nothing.
class Scratch {
 public:
  // Makes room for `bytes`. Returns false if there is no memory. If the scratch grows, its content is lost.
  bool provide(std::size_t bytes) { return bytes <= bytes_ || grow(bytes); }
  // Returns the error of a collective for which there is no memory.
  static Status exhausted() {
    return Status(Code::resource_exhausted, "no memory for the scratch of a collective");
  }

  std::byte* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  bool grow(std::size_t bytes) {
    memory_ = aligned_bytes(64, bytes);
    bytes_ = memory_ ? bytes : 0;
    return memory_ != nullptr;
  }

  AlignedBytes memory_;
  std::size_t bytes_ = 0;
};

}  // namespace tutti
