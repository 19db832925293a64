#include "transport/driver/spin_policy.h"

#include <chrono>

#include <gtest/gtest.h>

namespace tutti {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds longest(50);
constexpr milliseconds a_slice(3);

// Begins one wait after another until one of them may spin. Returns how many waits came before that one.
int skipped(SpinPolicy& policy) {
  int waits = 0;
  while (policy.begin().count() == 0) ++waits;
  return waits;
}

TEST(SpinPolicy, SpinsWhileThatFindsSomething) {
  SpinPolicy policy(longest);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(policy.begin(), longest);
    policy.end(true, microseconds(40));
  }
}

TEST(SpinPolicy, SleepsAfterSeveralVainSpins) {
  SpinPolicy policy(longest);
  for (int i = 0; i < 2; ++i) policy.end(false, longest);
  EXPECT_EQ(skipped(policy), 0);
  policy.end(false, longest);
  const int first = skipped(policy);
  EXPECT_GT(first, 0);
  for (int i = 0; i < 3; ++i) policy.end(false, longest);
  EXPECT_EQ(skipped(policy), 2 * first);
}

TEST(SpinPolicy, SleepsForLongAfterALostTimeSlice) {
  SpinPolicy policy(longest);
  policy.end(true, a_slice);
  const int first = skipped(policy);
  EXPECT_GT(first, 30);
  policy.end(false, a_slice);
  EXPECT_EQ(skipped(policy), 2 * first);
  for (int i = 0; i < 20; ++i) policy.end(false, a_slice);
  EXPECT_LT(skipped(policy), 10'000);  // the policy allows spins again at some point
}

TEST(SpinPolicy, ForgetsWhatWasLongAgo) {
  SpinPolicy policy(longest);
  for (int i = 0; i < 8; ++i) policy.end(false, a_slice);
  const int at_worst = skipped(policy);
  for (int i = 0; i < 2000; ++i) policy.end(true, microseconds(1));
  policy.end(false, a_slice);
  EXPECT_LT(skipped(policy), at_worst);
}

TEST(SpinPolicy, YieldsInVainAsOftenAsNeeded) {
  SpinPolicy policy(longest, SpinPolicy::InVain::is_fine);
  for (int i = 0; i < 100; ++i) policy.end(false, longest);
  EXPECT_EQ(policy.begin(), longest);
  policy.end(false, a_slice);
  EXPECT_GT(skipped(policy), 30);
}

TEST(SpinPolicy, WhoMayNotSpinAtAllNeverDoes) {
  SpinPolicy policy(microseconds(0));
  EXPECT_EQ(policy.begin().count(), 0);
  EXPECT_EQ(policy.begin().count(), 0);
}

}  // namespace
}  // namespace tutti
