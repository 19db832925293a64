#include "core/backoff.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using std::chrono::milliseconds;

TEST(Backoff, DoublesUpToItsLimit) {
  Backoff backoff(milliseconds(10), milliseconds(50));
  for (const int expected : {10, 20, 40, 50, 50}) {
    EXPECT_EQ(backoff.pause(), milliseconds(expected));
    EXPECT_EQ(backoff.next(), milliseconds(expected));
  }
}

}  // namespace
}  // namespace tutti
