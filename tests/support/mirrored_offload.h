#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/offload/offload.h"

namespace tutti::test {

// A `MirroredOffload` lets an offload for device memory carry out calls on host memory. So all tests of
// collectives can also test such an offload. A `MirroredOffload` copies the elements of each call to device
// memory of the fake CUDA (fake_cuda.h), and passes the call on. It copies the result back before it reports
// the end of the call.
class MirroredOffload final : public Offload {
 public:
  // All calls of this rank use the device with number `device`.
  MirroredOffload(std::unique_ptr<Offload> offload, int device)
      : offload_(std::move(offload)), device_(device) {}

  std::string_view name() const override { return offload_->name(); }
  std::string facts() const override { return offload_->facts(); }
  Status fits(std::span<const PeerInfo* const> members) const override { return offload_->fits(members); }
  bool takes_host_memory() const override { return true; }
  Status takes(const Fingerprint& call, std::span<const PeerInfo* const> members) const override {
    return offload_->takes(call, members);
  }
  Result<std::unique_ptr<OffloadSession>> open(OffloadPeers& peers) override;

 private:
  const std::unique_ptr<Offload> offload_;
  const int device_;
};

// Returns a function that gives each rank a staged offload over the fake CUDA (see
// `ClusterOptions::offloads`). A piece of a call has at most `piece_bytes` bytes.
std::function<std::vector<std::unique_ptr<Offload>>(int rank)> staged_offloads(std::size_t piece_bytes);
// Returns a function that gives each rank a `MirroredOffload`, which passes all calls to a staged offload.
// The ranks use two devices in turn.
std::function<std::vector<std::unique_ptr<Offload>>(int rank)> mirrored_staged_offloads(
    std::size_t piece_bytes = 4096);

}  // namespace tutti::test
