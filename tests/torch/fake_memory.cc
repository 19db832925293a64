#include "tests/torch/fake_memory.h"

#include <bit>
#include <memory>
#include <set>
#include <utility>

#include "tests/torch/fake_streams.h"

// The fake CUDA also has these functions of the driver.
extern "C" {
tutti::cuda::Outcome cuMemAllocAsync(tutti::cuda::Address* address, std::size_t bytes,
                                     tutti::cuda::StreamHandle stream);
tutti::cuda::Outcome cuMemFreeAsync(tutti::cuda::Address address, tutti::cuda::StreamHandle stream);
}

namespace fake_device {
namespace {

// A `Block` is memory that torch has allocated. `release` behaves like torch's own allocator. It frees the
// memory after the work in the stream of the allocation, and after the work in all recorded streams. The
// stream of the allocation does not wait for the recorded streams. If memory is freed too early, the next
// copy from or to it crashes.
struct Block {
  Stream owner;
  tutti::cuda::Address address = 0;
  std::set<c10::StreamId> users = {};

  static void release(void* self) {
    const std::unique_ptr<Block> block(static_cast<Block*>(self));
    const DeviceIndex device = block->owner.device_index();
    const Current current(device);
    std::set<c10::StreamId> users = std::move(block->users);
    const Stream freeing = users.empty() ? block->owner : freeing_stream(device);
    if (!users.empty()) users.insert(block->owner.id());
    for (const c10::StreamId user : users) {
      void* event = nullptr;
      guard().record(&event, stream_of(device, user), 0, c10::EventFlag::PYTORCH_DEFAULT);
      guard().block(event, freeing);
      guard().destroyEvent(event, 0);
    }
    check(cuMemFreeAsync(block->address, handle_of(freeing)), "cuMemFreeAsync");
  }
};

class FakeAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const Stream owner = current_stream(guard().getDevice());
    if (bytes == 0) return {nullptr, owner.device()};
    const Current current(owner.device_index());
    auto block = std::make_unique<Block>(Block{owner});
    check(cuMemAllocAsync(&block->address, bytes, handle_of(owner)), "cuMemAllocAsync");
    void* const address = std::bit_cast<void*>(block->address);
    return {address, block.release(), &Block::release, owner.device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override { TORCH_CHECK(false, "not needed"); }
};

}  // namespace

c10::Allocator& allocator() {
  static FakeAllocator made;
  return made;
}

void add_user(const c10::DataPtr& data, const c10::Stream& stream) {
  if (auto* const block = static_cast<Block*>(data.get_context())) block->users.insert(stream.id());
}

std::vector<c10::StreamId> users_of(const c10::DataPtr& data) {
  const auto* const block = static_cast<const Block*>(data.get_context());
  return {block->users.begin(), block->users.end()};
}

}  // namespace fake_device
