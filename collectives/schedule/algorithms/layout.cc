#include "collectives/schedule/algorithms/layout.h"

#include <bit>

namespace tutti {
namespace {

constexpr std::uint64_t max_segments = 4096;

}  // namespace

Blocks Blocks::uniform(std::uint64_t count, int size) {
  Blocks blocks;
  blocks.offsets_.reserve(static_cast<std::size_t>(size) + 1);
  for (int i = 0; i < size; ++i) blocks.offsets_.push_back(blocks.total() + count);
  return blocks;
}

Blocks Blocks::balanced(std::uint64_t total, int size) {
  Blocks blocks;
  blocks.offsets_.reserve(static_cast<std::size_t>(size) + 1);
  const auto p = static_cast<std::uint64_t>(size);
  for (std::uint64_t i = 0; i < p; ++i)
    blocks.offsets_.push_back(blocks.total() + total / p + (i < total % p ? 1 : 0));
  return blocks;
}

Blocks Blocks::packed(std::span<const std::uint64_t> counts) {
  Blocks blocks;
  blocks.offsets_.reserve(counts.size() + 1);
  for (const std::uint64_t count : counts) blocks.offsets_.push_back(blocks.total() + count);
  return blocks;
}

std::uint64_t Blocks::largest() const {
  std::uint64_t result = 0;
  for (std::size_t i = 1; i < offsets_.size(); ++i) result = std::max(result, offsets_[i] - offsets_[i - 1]);
  return result;
}

Segments::Segments(const Problem& problem, const Tuning& tuning, std::uint64_t largest, std::uint64_t passes)
    : unit_(std::max<std::uint64_t>(largest, 1)) {
  if (tuning.segment_bytes == 0) return;
  // `allowed` is a power of two. So the segments stay aligned if `largest` is a power of two as well.
  const std::uint64_t allowed = std::bit_floor(std::max<std::uint64_t>(max_segments / passes, 1));
  const std::uint64_t least = largest / allowed + (largest % allowed != 0 ? 1 : 0);
  const std::uint64_t wanted = std::max<std::uint64_t>(tuning.segment_bytes / problem.element_size, 1);
  unit_ = std::min(unit_, std::max(least, wanted));
}

Slots::Slots(ScheduleBuilder& builder, std::uint64_t count, std::uint64_t slots) {
  for (std::uint64_t i = 0; i < slots; ++i) slots_.push_back(builder.scratch(count));
}

Slice Slots::next(std::uint64_t count) {
  const Slice slot = sub_slice(slots_[next_], 0, count);
  next_ = (next_ + 1) % slots_.size();
  return slot;
}

Alternation::Alternation(ScheduleBuilder& builder, const Problem& problem, int stages)
    : builder_(builder), count_(problem.count), left_(stages), current_(input(0, count_)) {
  // The last stage writes to the output, the stage before it to scratch, and so on in turn.
  if (stages >= 2) spare_ = builder_.scratch(count_);
  next_ = stages % 2 == 1 ? output(0, count_) : spare_;
  if (stages == 0) {
    builder_.copy(current_, output(0, count_));
  } else if (stages % 2 == 1 && problem.in_place) {
    // The first stage must not receive into the memory that it sends.
    const Slice other = builder_.scratch(count_);
    if (stages == 1) {
      builder_.copy(current_, other);
      current_ = other;
    } else {
      next_ = other;
    }
  }
}

void Alternation::advance() {
  --left_;
  current_ = next_;
  next_ = left_ % 2 == 1 ? output(0, count_) : spare_;
}

}  // namespace tutti
