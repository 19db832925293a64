#include "core/stream_copy.h"

#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::test {
namespace {

// Tests many alignments of the source and of the target, with lengths around whole cache lines. Bytes next to
// the target must not change.
TEST(StreamCopy, EveryAlignmentAndLength) {
  std::vector<unsigned char> from(1024);
  std::iota(from.begin(), from.end(), 1);
  for (std::size_t to_offset = 0; to_offset < 64; to_offset += 3) {
    for (std::size_t from_offset = 0; from_offset < 64; from_offset += 7) {
      for (const std::size_t bytes : {0, 1, 15, 63, 64, 65, 127, 128, 200, 640}) {
        std::vector<unsigned char> to(1024, 0xee);
        stream_copy(to.data() + to_offset, from.data() + from_offset, bytes);
        stream_fence();
        std::vector<unsigned char> expected(1024, 0xee);
        std::memcpy(expected.data() + to_offset, from.data() + from_offset, bytes);
        ASSERT_EQ(to, expected) << to_offset << " " << from_offset << " " << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
