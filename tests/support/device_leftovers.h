#pragma once

#include <gtest/gtest.h>

#include "tests/support/fake_cuda.h"
#include "transport/cuda/word.h"

namespace tutti::test {

// Checks that the fake devices hold nothing any more. (The memory of a `cuda::Word` is never freed, so some
// pinned pages are left.)
inline void expect_nothing_on_devices() {
  const FakeCudaCounts left = fake_cuda_counts();
  EXPECT_EQ(left.streams + left.events, 0);
  EXPECT_EQ(left.device_bytes, 0u);
  EXPECT_EQ(left.pinned_bytes % cuda::Word::page_bytes, 0u);
  EXPECT_LT(left.pinned_bytes, 64u * cuda::Word::page_bytes);
}

}  // namespace tutti::test
