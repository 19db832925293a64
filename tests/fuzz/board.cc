// Fuzzes collectives over shared memory. Another rank writes any values to any place in this memory
// at any moment. The results of the collectives are then undefined. But the collectives may access
// only the shared memory and the buffers of this rank.
#include <memory>
#include <vector>

#include "tests/fuzz/input.h"
#include "tests/unit/collectives/board_world.h"

namespace tutti::fuzz {
namespace {

constexpr std::uint64_t allocated = 8192;  // the bytes that each rank allocates
constexpr std::uint64_t voted = 4096;      // the bytes of each buffer in a vote

constexpr CollectiveKind kinds[] = {CollectiveKind::all_reduce, CollectiveKind::broadcast,
                                    CollectiveKind::barrier,    CollectiveKind::all_gather,
                                    CollectiveKind::gather,     CollectiveKind::reduce_scatter};

// A `SilentBell` does nothing. No rank needs to be woken, since the ranks never sleep.
struct SilentBell final : SharedBell {
  void ring() const override {}
};

class Segment final : public SharedSegment {
 public:
  explicit Segment(std::size_t bytes)
      : bytes_(bytes),
        memory_(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))) {
    std::memset(memory_, 0, bytes);
  }
  ~Segment() override { std::free(memory_); }
  std::span<std::byte> memory() const override { return {memory_, bytes_}; }
  const SharedBell& bell(int) const override { return bell_; }

 private:
  std::size_t bytes_;
  std::byte* memory_;
  SilentBell bell_;
};

void corrupt(Input& input, std::span<std::byte> memory) {
  const std::size_t at = input.number<std::uint32_t>() % memory.size();
  const std::uint8_t how = input.byte();
  const auto bytes = input.bytes(std::min<std::size_t>(how % 33, memory.size() - at));
  std::ranges::copy(bytes, memory.begin() + static_cast<std::ptrdiff_t>(at));
}

// Forges votes that claim that all buffers of all ranks are registered, although no buffer is.
void forge_votes(Input& input, test::BoardWorld& world) {
  const Place places[] = {{1, input.byte(), voted}, {1, input.number<std::uint16_t>(), voted}};
  const std::uint64_t number = input.byte();
  for (int rank = 0; rank < world.size(); ++rank) {
    std::memcpy(world.executor(0).board().slot(rank, number).payload, places, sizeof places);
  }
}

void collectives(Input& input) {
  const int size = 2 + input.byte() % 3;
  test::BoardWorld world(size, 4096);
  const std::vector<std::uint64_t> parts(static_cast<std::size_t>(size), allocated);
  world.allocations().add(
      std::make_shared<GroupMemory>(std::make_unique<Segment>(GroupMemory::segment_bytes(parts)), 0, parts));
  while (!input.empty()) {
    const std::uint8_t what = input.byte();
    if (what % 4 == 0) {
      const CollectiveKind kind = kinds[input.byte() % std::size(kinds)];
      const std::uint64_t count = input.number<std::uint16_t>() % 3000;
      const int root = input.byte() % size;
      for (int rank = 0; rank < size; ++rank) {
        auto& run = world.issue(rank, kind, count, root, (what & 4) != 0).run;
        run.input_bytes = run.output_bytes = voted;
      }
    } else if (what % 4 == 1) {
      corrupt(input, world.memory());
    } else if (what % 32 == 3) {
      forge_votes(input, world);
    } else {
      world.executor(what / 4 % size).advance();
      for (int rank = 0; rank < size; ++rank) {
        static_cast<void>(world.executor(rank).compare());
        static_cast<void>(world.executor(rank).awaited());
        static_cast<void>(world.executor(rank).board().heard());
      }
    }
  }
}

// Fuzzes the places (`Place`) that another rank gives for its buffers.
void places(Input& input) {
  const std::vector<std::uint64_t> parts = {input.number<std::uint16_t>(), input.number<std::uint16_t>()};
  const auto memory =
      std::make_shared<GroupMemory>(std::make_unique<Segment>(GroupMemory::segment_bytes(parts)), 0, parts);
  AllocationTable table;
  table.add(memory);
  while (!input.empty()) {
    const int rank = input.byte() % 2;
    Place place;
    place.allocation = input.byte() % 3;
    place.offset = input.byte() % 2 == 0 ? input.number<std::uint16_t>() : input.number<std::uint64_t>();
    place.bytes = input.byte() % 2 == 0 ? input.number<std::uint16_t>() : input.number<std::uint64_t>();
    const std::byte* const found = table.resolve(rank, place);
    if (found == nullptr) continue;
    const std::byte* const part = memory->part(rank);
    require(found >= part && place.bytes <= memory->bytes(rank) &&
            static_cast<std::uint64_t>(found - part) <= memory->bytes(rank) - place.bytes);
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tutti::fuzz::Input input(data, size);
  input.byte() == 'p' ? tutti::fuzz::places(input) : tutti::fuzz::collectives(input);
  return 0;
}
