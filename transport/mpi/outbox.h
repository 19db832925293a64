#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tutti/status.h>

#include "core/free_delete.h"
#include "transport/mpi/messenger.h"

namespace tutti::mpi {

// An `Outbox` holds the packets that MPI is sending. Each packet has memory of its own, so MPI never reads
// the memory of an operation, and an operation can always be cancelled at once. A send itself cannot be
// cancelled: its memory is used again when MPI has finished.
class Outbox {
 public:
  Outbox(Messenger& messenger, std::uint32_t packet_bytes)
      : messenger_(messenger), packet_bytes_(packet_bytes) {}
  ~Outbox() { close(); }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Returns memory for the next packet. It is empty if memory has run out.
  std::span<std::byte> memory();
  // Sends the first bytes of the memory that `memory` has returned.
  Status send(std::size_t bytes, int to, int tag);
  // Lets all sends progress, and returns whether any of them has ended.
  Result<bool> collect();
  // Waits a moment for the sends that have not ended. The messenger keeps the memory that MPI may still read.
  void close();

 private:
  struct Slot {
    AlignedBytes memory;
    Handle request;
  };

  Messenger& messenger_;
  const std::uint32_t packet_bytes_;
  std::vector<std::unique_ptr<Slot>> free_;  // the last one is the next to be used
  std::vector<std::unique_ptr<Slot>> sending_;
};

}  // namespace tutti::mpi
