#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <tutti/status.h>

#include "core/free_delete.h"
#include "transport/mpi/messenger.h"

namespace tutti::mpi {

// An `Inbox` is a ring of posted receives for the packets of all peers. MPI matches the receives in the order
// in which they were posted, so only the oldest one must be tested.
class Inbox {
 public:
  Inbox(Messenger& messenger, std::uint32_t receives, std::uint32_t packet_bytes)
      : messenger_(messenger), slots_(receives), packet_bytes_(packet_bytes) {}
  ~Inbox() { close(); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // Posts all receives.
  Status open(int tag);
  // Returns the next packet, or nothing if none has arrived. The packet must be given back by `repost`.
  Result<std::optional<std::span<const std::byte>>> next();
  // Posts the receive of the last packet again.
  Status repost();
  // Cancels all receives. The messenger keeps the memory that MPI does not let go of.
  void close();

 private:
  struct Slot {
    AlignedBytes memory;
    Handle request;
    bool posted = false;
  };

  Status post(Slot& slot);

  Messenger& messenger_;
  std::vector<Slot> slots_;
  const std::uint32_t packet_bytes_;
  std::size_t oldest_ = 0;
  int tag_ = 0;
};

}  // namespace tutti::mpi
