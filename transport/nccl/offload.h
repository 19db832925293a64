#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/cuda/api.h"
#include "transport/nccl/api.h"
#include "transport/nccl/lane.h"
#include "transport/nccl/regions.h"
#include "transport/nccl/session.h"
#include "transport/offload/offload.h"

namespace tutti::nccl {

// An `Offload` lets NCCL carry out collectives on the memory of CUDA devices.
class Offload final : public tutti::Offload {
 public:
  Offload(const cuda::Api& cuda, const Api& api);

  std::string_view name() const override { return "nccl"; }
  std::string facts() const override { return facts_; }
  Status fits(std::span<const PeerInfo* const> members) const override;
  Status takes(const Fingerprint& call, std::span<const PeerInfo* const> members) const override;
  Status can_follow(void* stream, Memory memory) const override {
    return cuda::can_follow(cuda_, stream, memory);
  }
  Result<std::unique_ptr<OffloadSession>> open(OffloadPeers& peers) override;
  Result<std::unique_ptr<RegisteredMemory>> add_memory(std::span<std::byte> region) override;
  Result<std::unique_ptr<AllocatedMemory>> allocate(std::size_t bytes, Memory memory) override;

 private:
  Result<std::shared_ptr<Lane>> lane(int device);
  // Returns NCCL's unique id for a new communicator. Rank 0 makes the id and sends it to all other ranks, so
  // all ranks must call this.
  Result<UniqueId> agree_on_id(OffloadPeers& peers);
  // Gives up a session that could not be opened. Returns at once, but the session may need longer to end.
  void give_up(std::unique_ptr<Session> session, const Status& why);

  const cuda::Api& cuda_;
  const Api api_;
  const std::string host_;  // the id by which NCCL tells this host from other hosts
  const std::string facts_;
  const std::shared_ptr<Regions> regions_ = std::make_shared<Regions>();
  std::mutex mutex_;                            // guards the following members
  std::map<int, std::shared_ptr<Lane>> lanes_;  // by device
  std::vector<std::unique_ptr<Session>> given_up_;
};

}  // namespace tutti::nccl
