#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/call.h"

namespace tutti::staged {

// A `Part` is the part of one buffer that belongs to one piece of a call: the same range of
// elements in each of the buffer's blocks.
struct Part {
  // A `Range` is a part of the buffer, in bytes.
  struct Range {
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  std::vector<Range> ranges;          // in ascending order, none of them empty
  std::vector<std::uint64_t> counts;  // the elements of each block
  std::uint64_t count = 0;            // the sum of `counts`
};

// A `Cutting` says how a call is cut into pieces. Each piece is a smaller call of the same kind. Piece k has
// elements [k * n, (k + 1) * n) of each block, and n is equal on all ranks.
class Cutting {
 public:
  // A piece has at most `piece_bytes` bytes of each buffer, or one element of each block if that is
  // more. The counts of `call` must be valid only until the constructor returns.
  Cutting(const Call& call, int rank, int size, std::size_t piece_bytes);

  // Returns how many pieces this rank's blocks need. If all ranks know all counts, the call has this many
  // pieces. Otherwise the call has the largest number of pieces that any rank needs.
  std::uint64_t own_pieces() const { return own_pieces_; }
  bool all_know_counts() const { return all_know_counts_; }

  DataType type() const { return type_; }
  // Returns whether each rank has one block in each buffer, so that a piece's input and output can be the
  // same memory.
  bool is_in_one_block() const { return one_block_; }
  // Returns whether this rank's output changes.
  bool writes() const { return writes_; }
  // These functions return a piece's part of the buffers. A buffer that the rank does not use has no blocks.
  Part input(std::uint64_t piece) const { return part(input_, piece); }
  Part output(std::uint64_t piece) const { return part(output_, piece); }

 private:
  using Blocks = std::vector<std::uint64_t>;  // the count of each block
  Part part(const Blocks& blocks, std::uint64_t piece) const;

  DataType type_ = DataType::uint8;
  bool all_know_counts_ = true;
  bool one_block_ = false;
  bool writes_ = false;
  Blocks input_;
  Blocks output_;
  std::uint64_t length_ = 1;  // the elements that a piece has of each block
  std::uint64_t own_pieces_ = 0;
};

}  // namespace tutti::staged
