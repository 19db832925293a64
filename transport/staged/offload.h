#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "transport/cuda/api.h"
#include "transport/cuda/device.h"
#include "transport/offload/offload.h"

namespace tutti::staged {

// A `StagedOffload` carries out every collective on the memory of CUDA devices (docs/gpu.md). It
// copies the elements to the host, runs an ordinary collective there, and copies the result back. It also
// makes the copiers of messages.
class StagedOffload final : public Offload {
 public:
  StagedOffload(const cuda::Api& api, std::size_t piece_bytes) : api_(api), piece_bytes_(piece_bytes) {}

  std::string_view name() const override { return "staged"; }
  std::string facts() const override;
  Status fits(std::span<const PeerInfo* const>) const override { return {}; }
  Status takes(const Fingerprint&, std::span<const PeerInfo* const>) const override { return {}; }
  Status can_follow(void* stream, Memory memory) const override {
    return cuda::can_follow(api_, stream, memory);
  }
  Result<std::unique_ptr<OffloadSession>> open(OffloadPeers& peers) override;
  Result<std::unique_ptr<AllocatedMemory>> allocate(std::size_t bytes, Memory memory) override;
  Result<std::unique_ptr<Copier>> copier(Memory memory) override;

 private:
  const cuda::Api& api_;
  const std::size_t piece_bytes_;
};

}  // namespace tutti::staged
