// Fuzzes both ends of a ring in shared memory. The other process writes any value to its own
// position (`Lane::tail` or `Lane::head`).
#include "transport/shm/ring.h"

#include <memory>

#include "tests/fuzz/input.h"

namespace tutti::fuzz {
namespace {

constexpr std::size_t ring_bytes = 1024;

void touch(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(static_cast<unsigned>(byte) + 1);
}

unsigned sum(std::span<const std::byte> bytes) {
  unsigned total = 0;
  for (const std::byte byte : bytes) total += static_cast<unsigned>(byte);
  return total;
}

std::uint64_t position(Input& input, std::uint64_t near) {
  const std::uint8_t how = input.byte();
  if (how < 128) return near + std::uint64_t{how} % 20 * shm::line_bytes;
  return how < 160 ? near - how : input.number<std::uint64_t>();
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  Input input(data, size);
  // The memory has exactly the length of the ring, so that a sanitizer notices every access outside it.
  const auto memory = std::make_unique<std::byte[]>(ring_bytes);
  const std::span<std::byte> bytes(memory.get(), ring_bytes);
  tutti::shm::Lane lane{};
  tutti::shm::RingWriter writer;
  tutti::shm::RingReader reader;
  const bool reads = input.byte() % 2 == 0;
  writer.open(lane, bytes);
  reader.open(lane, bytes);
  while (!input.empty() && !reader.broken() && !writer.broken()) {
    if (reads) {
      lane.tail.store(position(input, lane.tail.load()));
      const auto readable = reader.readable();
      require(readable.size() <= ring_bytes && readable.size() % tutti::shm::line_bytes == 0);
      static_cast<void>(sum(readable));
      reader.advance(std::min<std::size_t>(readable.size(), input.number<std::uint16_t>()));
      if (reader.owes_room()) reader.release();
      if (reader.has_news()) reader.expect();
    } else {
      lane.head.store(position(input, lane.head.load()));
      const auto room = writer.room();
      require(room.size() <= ring_bytes && room.size() % tutti::shm::line_bytes == 0);
      touch(room);
      writer.advance(std::min<std::size_t>(room.size(), input.number<std::uint16_t>()));
      if (input.byte() % 2 == 0) writer.publish();
    }
  }
  return 0;
}
