#include "transport/mpi/outbox.h"

#include <chrono>
#include <thread>
#include <utility>

#include <tutti/deadline.h>

#include "transport/mpi/packet.h"

namespace tutti::mpi {
namespace {

// Once all channels are closed, a send ends soon, or its receiver is lost.
constexpr std::chrono::milliseconds longest_closing{200};

}  // namespace

std::span<std::byte> Outbox::memory() {
  if (free_.empty()) {
    auto slot = std::make_unique<Slot>();
    slot->memory = aligned_bytes(packet_alignment, packet_bytes_);
    if (slot->memory == nullptr) return {};
    free_.push_back(std::move(slot));
  }
  return {free_.back()->memory.get(), packet_bytes_};
}

Status Outbox::send(std::size_t bytes, int to, int tag) {
  Slot& slot = *free_.back();
  if (Status status = messenger_.send({slot.memory.get(), bytes}, to, tag, slot.request); !status.ok())
    return status;
  // MPI has usually sent a small message already.
  const Result<bool> sent = messenger_.has_sent(slot.request);
  if (sent.ok() && *sent) return {};
  sending_.push_back(std::move(free_.back()));
  free_.pop_back();
  return sent.status();
}

Result<bool> Outbox::collect() {
  bool any = false;
  for (std::size_t i = 0; i < sending_.size();) {
    const Result<bool> sent = messenger_.has_sent(sending_[i]->request);
    if (!sent.ok()) return sent.status();
    if (!*sent) {
      ++i;
      continue;
    }
    any = true;
    free_.push_back(std::move(sending_[i]));
    sending_.erase(sending_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return any;
}

void Outbox::close() {
  const Deadline deadline = Deadline::after(longest_closing);
  while (!sending_.empty() && collect().ok() && !deadline.expired()) std::this_thread::yield();
  for (auto& slot : sending_) messenger_.keep(std::move(slot->memory));
  sending_.clear();
}

}  // namespace tutti::mpi
