#pragma once

#include <cstddef>
#include <span>

#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti::shm {

// A `Segment` is nameless memory that several processes can map. It is a memfd, sealed against shrinking and
// growing. An access within the mapping raises SIGBUS in one case only: memory has run out, the page was not
// provided (see `provide`), and the kernel does not overcommit (vm.overcommit_memory=2).
// The object cannot be moved, since other objects point into the memory.
class Segment {
 public:
  Segment() = default;
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Makes a new segment, zeroed and mapped. Its size is rounded up to whole pages.
  Status create(std::size_t bytes);
  // Maps a segment that a peer has handed over. Fails unless the segment is ordinary memory, is sealed, and
  // has exactly `bytes` bytes, rounded up to whole pages.
  Status map(Descriptor memfd, std::size_t bytes);
  // Allocates the pages of a part now. Without this call, a page is allocated when a process first touches
  // it. If memory has run out by then, the kernel kills that process. The pages are taken from memory near
  // the calling thread's processor.
  Status provide(std::size_t offset, std::size_t bytes);
  // Frees the pages of `part`, which must consist of whole pages, for all processes. The part reads as zero
  // from then on.
  void discard(std::span<std::byte> part);
  // Closes the descriptor; the mapping stays.
  void close_descriptor() { memfd_.reset(); }

  int descriptor() const { return memfd_.get(); }
  std::span<std::byte> memory() const { return memory_; }

 private:
  Status map_all(std::size_t bytes);

  Descriptor memfd_;
  std::span<std::byte> memory_;
};

std::size_t page_bytes();
std::size_t round_up_to_pages(std::size_t bytes);

}  // namespace tutti::shm
