#include "transport/staged/offload.h"

#include "transport/cuda/device_memory.h"
#include "transport/staged/pinned_copier.h"
#include "transport/staged/session.h"

namespace tutti::staged {

std::string StagedOffload::facts() const {
  int version = 0;
  if (api_.DriverGetVersion(&version) != cuda::success) return "CUDA of unknown version";
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Result<std::unique_ptr<OffloadSession>> StagedOffload::open(OffloadPeers& peers) {
  Result<std::unique_ptr<Session>> session = Session::open(api_, peers, piece_bytes_);
  if (!session.ok()) return session.status();
  return std::unique_ptr<OffloadSession>(*std::move(session));
}

Result<std::unique_ptr<AllocatedMemory>> StagedOffload::allocate(std::size_t bytes, Memory memory) {
  Result<std::unique_ptr<cuda::DeviceMemory>> made =
      cuda::DeviceMemory::allocate(api_, memory.device(), bytes);
  if (!made.ok()) return made.status();
  return std::unique_ptr<AllocatedMemory>(*std::move(made));
}

Result<std::unique_ptr<Copier>> StagedOffload::copier(Memory memory) {
  Result<std::unique_ptr<PinnedCopier>> made = PinnedCopier::create(api_, memory.device(), piece_bytes_);
  if (!made.ok()) return made.status();
  return std::unique_ptr<Copier>(*std::move(made));
}

}  // namespace tutti::staged
