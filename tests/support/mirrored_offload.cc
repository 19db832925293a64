#include "tests/support/mirrored_offload.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tests/support/fake_cuda.h"
#include "transport/cuda/device.h"
#include "transport/staged/factory.h"

namespace tutti::test {

namespace {

// `MirroredPeers` wrap the peers of an offload, and report the memory of a device in place of host memory.
class MirroredPeers final : public OffloadPeers {
 public:
  MirroredPeers(OffloadPeers& peers, int device) : peers_(peers), device_(device) {}
  int rank() const override { return peers_.rank(); }
  std::span<const PeerInfo* const> members() const override { return peers_.members(); }
  Memory memory() const override { return Memory::cuda(device_); }
  Result<std::vector<std::byte>> exchange(std::span<const std::byte> mine) override {
    return peers_.exchange(mine);
  }
  Result<std::unique_ptr<HostCalls>> host_calls() override { return peers_.host_calls(); }
  Status status() const override { return peers_.status(); }
  Deadline deadline() const override { return peers_.deadline(); }

 private:
  OffloadPeers& peers_;
  const int device_;
};

// A `Mirror` is the copy of one call in the memory of a device.
class Mirror : public OffloadCall {
 public:
  Mirror(OffloadCall& original, int rank, int device) : original_(original) {
    call = original.call;
    stream = original.stream;
    done = [](OffloadCall& self, const Status& status) { static_cast<Mirror&>(self).report(status); };
    writes_ = has_output(call, rank) && call.out.count != 0;
    const bool reads = has_input(call, rank) && call.in.count != 0;
    const auto in = std::bit_cast<std::uint64_t>(call.in.data);
    const auto out = std::bit_cast<std::uint64_t>(call.out.data);
    const std::size_t in_bytes = reads ? call.in.bytes() : 0;
    const std::size_t out_bytes = writes_ ? call.out.bytes() : 0;
    // If the call is in place, the copies of the two buffers are as far apart as the buffers themselves.
    // Otherwise the copy of the output follows the copy of the input.
    const bool in_place = in < out + out_bytes && out < in + in_bytes;
    const std::uint64_t begin = std::min(in, out);
    const std::size_t in_offset = in_place ? in - begin : 0;
    const std::size_t out_offset = in_place ? out - begin : (in_bytes + 7) / 8 * 8;
    const std::size_t bytes = std::max(in_offset + in_bytes, out_offset + out_bytes);
    if (bytes != 0) cuMemAlloc_v2(&address_, bytes);
    call.in.memory = call.out.memory = Memory::cuda(device);
    call.in.data = reads ? std::bit_cast<void*>(address_ + in_offset) : nullptr;
    call.out.data = writes_ ? std::bit_cast<void*>(address_ + out_offset) : nullptr;
    if (reads) std::memcpy(view(call.in), original.call.in.data, in_bytes);
    if (writes_) std::memcpy(view(call.out), original.call.out.data, out_bytes);
  }
  ~Mirror() {
    if (address_ != 0) cuMemFree_v2(address_);
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

 private:
  static void* view(const ConstBuffer& buffer) {
    return fake_cuda_host_address(std::bit_cast<cuda::Address>(buffer.data), buffer.bytes());
  }
  void report(const Status& status) {
    const std::unique_ptr<Mirror> ends(this);
    if (status.ok() && writes_) std::memcpy(original_.call.out.data, view(call.out), call.out.bytes());
    original_.done(original_, status);
  }

  OffloadCall& original_;
  cuda::Address address_ = 0;
  bool writes_ = false;
};

class MirroredSession final : public OffloadSession {
 public:
  MirroredSession(std::unique_ptr<OffloadSession> session, std::unique_ptr<cuda::Device> device, int rank)
      : session_(std::move(session)), device_(std::move(device)), rank_(rank) {}

  void issue(std::span<OffloadCall* const> calls) override {
    const cuda::Device::Current current(*device_);
    std::vector<OffloadCall*> mirrors;
    for (OffloadCall* const call : calls)
      // The mirror deletes itself at the end of the call.
      mirrors.push_back(new Mirror(*call, rank_, device_->number()));
    session_->issue(mirrors);
  }
  void abort(const Status& why) override { session_->abort(why); }
  Result<StreamWait> wait_on(OffloadCall&, void*) override {
    return Status(Code::unsupported, "the result is on the host before a stream could see it");
  }
  bool poll() override { return session_->poll(); }
  bool prepare_sleep() override { return session_->prepare_sleep(); }
  void cancel_sleep() override { session_->cancel_sleep(); }
  bool expects_memory() const override { return session_->expects_memory(); }
  Deadline next_deadline() const override { return session_->next_deadline(); }

 private:
  const std::unique_ptr<OffloadSession> session_;
  const std::unique_ptr<cuda::Device> device_;
  const int rank_;
};

}  // namespace

Result<std::unique_ptr<OffloadSession>> MirroredOffload::open(OffloadPeers& peers) {
  MirroredPeers mirrored(peers, device_);
  Result<std::unique_ptr<OffloadSession>> session = offload_->open(mirrored);
  if (!session.ok()) return session;
  auto device = cuda::Device::open(**cuda::load(TUTTI_FAKE_CUDA), device_).take();
  return std::unique_ptr<OffloadSession>(
      std::make_unique<MirroredSession>(*std::move(session), std::move(device), peers.rank()));
}

std::function<std::vector<std::unique_ptr<Offload>>(int rank)> staged_offloads(std::size_t piece_bytes) {
  return [piece_bytes](int) {
    std::vector<std::unique_ptr<Offload>> only;
    only.push_back(staged::create({.cuda_library = TUTTI_FAKE_CUDA, .piece_bytes = piece_bytes}).take());
    return only;
  };
}

std::function<std::vector<std::unique_ptr<Offload>>(int rank)> mirrored_staged_offloads(
    std::size_t piece_bytes) {
  return [staged = staged_offloads(piece_bytes)](int rank) {
    std::vector<std::unique_ptr<Offload>> only = staged(rank);
    only.front() = std::make_unique<MirroredOffload>(std::move(only.front()), rank % 2);
    return only;
  };
}

}  // namespace tutti::test
