#include "rendezvous/meeting/detached_call.h"

#include <chrono>
#include <csignal>
#include <future>
#include <memory>

#include <gtest/gtest.h>

namespace tutti {
namespace {

using std::chrono::milliseconds;

Deadline ample() { return Deadline::after(std::chrono::seconds(60)); }

// Returns a function that waits for the promise, and then returns 7.
std::function<int()> waits_for(std::promise<void>& promise) {
  return [kept = promise.get_future().share()] {
    kept.wait();
    return 7;
  };
}

TEST(DetachedCall, ReturnsWhatTheFunctionReturns) {
  const DetachedCall call([] { return 7; });
  const Result<int> result = call.wait({}, ample());
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(*result, 7);
  EXPECT_TRUE(call.has_returned());
}

TEST(DetachedCall, CanBeGivenUpAndWaitedForAgain) {
  std::promise<void> promise;
  const DetachedCall call(waits_for(promise));
  EXPECT_EQ(call.wait({}, Deadline::after(milliseconds(10))).status().code(), Code::timeout);
  EXPECT_EQ(call.wait([] { return true; }, ample()).status().code(), Code::aborted);
  EXPECT_FALSE(call.has_returned());
  promise.set_value();
  const Result<int> result = call.wait([] { return false; }, ample());
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(*result, 7);
}

TEST(DetachedCall, MayReturnAfterNobodyWaitsAnyMore) {
  std::promise<void> promise;
  const auto returned = std::make_shared<std::promise<void>>();
  const std::future<void> end = returned->get_future();
  {
    const DetachedCall call([work = waits_for(promise), returned] {
      const int result = work();
      returned->set_value();
      return result;
    });
    EXPECT_FALSE(call.wait({}, Deadline::after(milliseconds(1))).ok());
  }
  promise.set_value();
  EXPECT_EQ(end.wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

// The program's signal handlers must not run on a thread that the program does not know.
TEST(DetachedCall, TakesNoSignals) {
  const DetachedCall call([] {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    return sigismember(&blocked, SIGINT);
  });
  EXPECT_EQ(call.wait({}, ample()).take(), 1);
}

}  // namespace
}  // namespace tutti
