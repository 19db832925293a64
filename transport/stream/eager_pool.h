#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "transport/stream/limits.h"

namespace tutti {

// An `EagerPool` provides memory for eager payloads that no receive has claimed yet. The peer's credit window
// bounds the memory in use, since a message costs at least as much credit as its block has bytes. Freed
// blocks are kept for reuse as long as used and kept blocks together fit into the window.
class EagerPool {
 public:
  explicit EagerPool(std::uint32_t window) : window_(window) {}
  ~EagerPool() {
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      while (classes_[i] != nullptr) drop(i);
    }
  }
  EagerPool(const EagerPool&) = delete;
  EagerPool& operator=(const EagerPool&) = delete;

  // Returns memory for a payload. Returns null if the payload is empty or there is no memory.
  std::byte* get(std::uint32_t payload) {
    const std::uint32_t bytes = StreamLimits::block_bytes(payload);
    if (bytes == 0) return nullptr;
    Block*& kept = classes_[class_of(bytes)];
    used_ += bytes;
    if (kept != nullptr) {
      Block* block = kept;
      kept = block->next;
      kept_ -= bytes;
      return reinterpret_cast<std::byte*>(block);
    }
    for (std::size_t i = classes_.size(); i-- > 0 && used_ + kept_ > window_;) {
      while (classes_[i] != nullptr && used_ + kept_ > window_) drop(i);
    }
    auto* block = static_cast<std::byte*>(std::aligned_alloc(alignment, round_up(bytes)));
    if (block == nullptr) used_ -= bytes;
    return block;
  }

  void put(std::byte* memory, std::uint32_t payload) {
    if (memory == nullptr) return;
    const std::uint32_t bytes = StreamLimits::block_bytes(payload);
    used_ -= bytes;
    auto* block = reinterpret_cast<Block*>(memory);
    const std::size_t index = class_of(bytes);
    block->next = classes_[index];
    classes_[index] = block;
    kept_ += bytes;
    if (used_ + kept_ > window_) drop(index);
  }

  std::size_t used() const { return used_; }

 private:
  static constexpr std::size_t alignment = 64;
  struct Block {
    Block* next;
  };

  static constexpr std::size_t round_up(std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  }
  // Maps the block sizes 64, 96, 128, 192, 256 ... to 0, 1, 2, 3, 4 ...
  static constexpr std::size_t class_of(std::uint32_t bytes) {
    const auto power = static_cast<std::size_t>(std::bit_width(bytes)) - 7;
    return 2 * power + (std::has_single_bit(bytes) ? 0 : 1);
  }
  static constexpr std::uint32_t class_bytes(std::size_t index) {
    return (index % 2 == 0 ? 64u : 96u) << (index / 2);
  }

  void drop(std::size_t index) {
    Block* block = classes_[index];
    classes_[index] = block->next;
    kept_ -= class_bytes(index);
    std::free(block);
  }

  std::size_t window_;
  std::size_t used_ = 0;
  std::size_t kept_ = 0;
  std::array<Block*, 52> classes_{};
};

}  // namespace tutti
