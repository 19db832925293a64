#include "transport/shm/pipe.h"

namespace tutti::shm {

// A `Front` is at the start of the shared memory. All zeros are its initial state.
struct Pipe::Front {
  std::atomic<std::uint64_t> proof;
  Side sides[2];
  Lane lanes[2];  // indexed by the side that writes
};

namespace {

std::size_t front_bytes() { return page_bytes(); }

}  // namespace

Result<std::unique_ptr<Pipe>> Pipe::create(std::size_t ring, std::uint64_t proof) {
  auto pipe = std::make_unique<Pipe>();
  const std::size_t bytes = front_bytes() + 2 * ring;
  Status made = pipe->segment_.create(bytes);
  if (made.ok()) made = pipe->segment_.provide(0, bytes);
  if (!made.ok()) return made;
  pipe->proof_ = proof;
  pipe->lay_out(0, ring);
  return pipe;
}

Result<std::unique_ptr<Pipe>> Pipe::map(Descriptor memfd, std::uint64_t ring, std::uint64_t proof) {
  if (!is_ring_size(ring))
    return Status(Code::protocol_error, "the peer offers a ring of " + std::to_string(ring) + " bytes");
  auto pipe = std::make_unique<Pipe>();
  const std::size_t bytes = front_bytes() + 2 * ring;
  Status mapped = pipe->segment_.map(std::move(memfd), bytes);
  // Side 0 should have allocated the pages. If it has left holes, this call fills them, so that running out
  // of memory cannot kill this process later.
  if (mapped.ok()) mapped = pipe->segment_.provide(0, bytes);
  if (!mapped.ok()) return mapped;
  pipe->lay_out(1, ring);
  pipe->front().proof.store(proof, std::memory_order_release);
  return pipe;
}

bool Pipe::is_proved() const { return front().proof.load(std::memory_order_acquire) == proof_; }

void Pipe::lay_out(std::size_t side, std::size_t ring) {
  static_assert(sizeof(Front) <= 4096);
  const std::span<std::byte> rings = segment_.memory().subspan(front_bytes());
  Front& words = front();
  own_ = &words.sides[side];
  peer_ = &words.sides[1 - side];
  out_.open(words.lanes[side], rings.subspan(side * ring, ring));
  in_.open(words.lanes[1 - side], rings.subspan((1 - side) * ring, ring));
}

}  // namespace tutti::shm
