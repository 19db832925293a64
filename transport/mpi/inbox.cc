#include "transport/mpi/inbox.h"

#include <utility>

#include "transport/mpi/packet.h"

namespace tutti::mpi {

Status Inbox::open(int tag) {
  tag_ = tag;
  for (Slot& slot : slots_) {
    slot.memory = aligned_bytes(packet_alignment, packet_bytes_);
    if (slot.memory == nullptr) return Status(Code::resource_exhausted, "no memory for packets of MPI");
    if (Status status = post(slot); !status.ok()) return status;
  }
  return {};
}

Status Inbox::post(Slot& slot) {
  Status status = messenger_.receive({slot.memory.get(), packet_bytes_}, tag_, slot.request);
  slot.posted = status.ok();
  return status;
}

Result<std::optional<std::span<const std::byte>>> Inbox::next() {
  Slot& slot = slots_[oldest_];
  if (!slot.posted) return std::optional<std::span<const std::byte>>();
  const Result<std::optional<std::size_t>> bytes = messenger_.received(slot.request);
  if (!bytes.ok()) return bytes.status();
  if (!*bytes) return std::optional<std::span<const std::byte>>();
  slot.posted = false;
  return std::optional(std::span<const std::byte>(slot.memory.get(), **bytes));
}

Status Inbox::repost() {
  Slot& slot = slots_[oldest_];
  oldest_ = (oldest_ + 1) % slots_.size();
  return post(slot);
}

void Inbox::close() {
  for (Slot& slot : slots_) {
    if (!slot.posted) continue;
    slot.posted = false;
    if (messenger_.withdraw(slot.request)) continue;
    messenger_.keep(std::move(slot.memory));
  }
}

}  // namespace tutti::mpi
