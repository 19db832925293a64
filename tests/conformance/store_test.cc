#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/store_cases.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Deadline soon() { return Deadline::after(milliseconds(50)); }
Deadline ample() { return Deadline::after(seconds(60)); }

class StoreConformance : public testing::TestWithParam<StoreKind> {
 protected:
  std::shared_ptr<Store> open() { return under_test_->open(); }

  // Runs `body(i, store)` in `count` threads, each with its own handle.
  template <class Body>
  void in_threads(int count, Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] { body(i, *open()); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::unique_ptr<StoreUnderTest> under_test_ = GetParam().create();
};

TEST_P(StoreConformance, ReturnsWhatWasSet) {
  const auto store = open();
  ASSERT_TRUE(store->set("a", "1", ample()).ok());
  ASSERT_TRUE(store->set("b", "", ample()).ok());
  const std::string binary("\0\xff\n\x80", 4);
  ASSERT_TRUE(store->set(binary, binary, ample()).ok());
  EXPECT_EQ(store->get("a", ample()).take(), "1");
  EXPECT_EQ(store->get("b", ample()).take(), "");
  EXPECT_EQ(open()->get(binary, ample()).take(), binary);
  ASSERT_TRUE(store->set("a", "2", ample()).ok());
  EXPECT_EQ(store->get("a", ample()).take(), "2");
}

TEST_P(StoreConformance, GetWaitsForTheKey) {
  const auto store = open();
  std::thread setter([&] {
    std::this_thread::sleep_for(milliseconds(30));
    EXPECT_TRUE(open()->set("late", "value", ample()).ok());
  });
  EXPECT_EQ(store->get("late", ample()).take(), "value");
  setter.join();
}

TEST_P(StoreConformance, WaitsWithoutADeadline) {
  const auto store = open();
  std::thread setter([&] { EXPECT_TRUE(open()->set("k1", "v", Deadline::never()).ok()); });
  EXPECT_EQ(store->get("k1", Deadline::never()).take(), "v");
  setter.join();
}

TEST_P(StoreConformance, TimeoutNamesWhatIsMissing) {
  const auto store = open();
  ASSERT_TRUE(store->set("there", "x", ample()).ok());
  const Status alone = store->get("lonely", soon()).status();
  EXPECT_EQ(alone.code(), Code::timeout);
  EXPECT_NE(alone.message().find("lonely"), std::string::npos) << alone.to_string();
  const std::vector<std::string> keys = {"there", "missing1", "missing2"};
  const Status several = store->wait(keys, soon());
  EXPECT_EQ(several.code(), Code::timeout);
  EXPECT_NE(several.message().find("missing1"), std::string::npos) << several.to_string();
  EXPECT_NE(several.message().find("missing2"), std::string::npos) << several.to_string();
  EXPECT_EQ(several.message().find("there'"), std::string::npos) << several.to_string();
  // The handle still works.
  EXPECT_EQ(store->get("there", ample()).take(), "x");
}

TEST_P(StoreConformance, ADeadlineThatIsOverMakesItAPoll) {
  const auto store = open();
  const Deadline over = Deadline::after(milliseconds(-5));
  EXPECT_EQ(store->get("polled", over).status().code(), Code::timeout);
  ASSERT_TRUE(store->set("polled", "now", ample()).ok());
  EXPECT_EQ(store->get("polled", over).take(), "now");
  EXPECT_TRUE(store->wait(std::vector<std::string>{"polled"}, over).ok());
}

TEST_P(StoreConformance, WaitsForManyKeysInAnyOrder) {
  constexpr int count = 20;
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) keys.push_back("many/" + std::to_string(i));
  std::thread setter([&] {
    const auto store = open();
    for (int i = count - 1; i >= 0; --i) {
      EXPECT_TRUE(store->set(keys[static_cast<std::size_t>(i)], std::to_string(i), ample()).ok());
    }
  });
  EXPECT_TRUE(open()->wait(keys, ample()).ok());
  const std::vector<std::string> values = open()->get_many(keys, ample()).take();
  ASSERT_EQ(values.size(), keys.size());
  for (int i = 0; i < count; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], std::to_string(i));
  setter.join();
}

TEST_P(StoreConformance, WaitWantsAllKeysAtTheSameTime) {
  const auto store = open();
  ASSERT_TRUE(store->set("first", "1", ample()).ok());
  std::thread changer([&] {
    const auto other = open();
    EXPECT_TRUE(other->delete_key("first", ample()).take());
    EXPECT_TRUE(other->set("second", "2", ample()).ok());
    EXPECT_TRUE(other->set("first", "again", ample()).ok());
  });
  const std::vector<std::string> keys = {"first", "second"};
  EXPECT_EQ(store->get_many(keys, ample()).take().back(), "2");
  changer.join();
}

TEST_P(StoreConformance, AddCounts) {
  const auto store = open();
  EXPECT_EQ(store->add("n", 5, ample()).take(), 5);
  EXPECT_EQ(store->add("n", -7, ample()).take(), -2);
  EXPECT_EQ(store->get("n", ample()).take(), "-2");
  ASSERT_TRUE(store->set("n", "40", ample()).ok());
  EXPECT_EQ(store->add("n", 2, ample()).take(), 42);
  ASSERT_TRUE(store->set("text", "x1", ample()).ok());
  EXPECT_EQ(store->add("text", 1, ample()).status().code(), Code::invalid_argument);
  ASSERT_TRUE(store->set("large", std::to_string(INT64_MAX), ample()).ok());
  EXPECT_EQ(store->add("large", 1, ample()).status().code(), Code::invalid_argument);
  EXPECT_EQ(store->get("large", ample()).take(), std::to_string(INT64_MAX));
}

TEST_P(StoreConformance, ConcurrentAddsAllCount) {
  constexpr int threads = 8, each = 100;
  std::mutex mutex;
  std::set<std::int64_t> sums;
  in_threads(threads, [&](int, Store& store) {
    for (int i = 0; i < each; ++i) {
      const std::int64_t sum = store.add("counter", 1, ample()).take();
      const std::lock_guard lock(mutex);
      sums.insert(sum);
    }
  });
  EXPECT_EQ(sums.size(), static_cast<std::size_t>(threads * each));  // no two calls returned the same sum
  EXPECT_EQ(*sums.rbegin(), threads * each);
}

TEST_P(StoreConformance, CompareSetFollowsC10d) {
  const auto store = open();
  EXPECT_EQ(store->compare_set("c", "absent", "new", ample()).take(), "absent");
  EXPECT_FALSE(store->exists("c", ample()).take());
  EXPECT_EQ(store->compare_set("c", "", "one", ample()).take(), "one");
  EXPECT_EQ(store->compare_set("c", "", "two", ample()).take(), "one");
  EXPECT_EQ(store->compare_set("c", "wrong", "two", ample()).take(), "one");
  EXPECT_EQ(store->compare_set("c", "one", "two", ample()).take(), "two");
  EXPECT_EQ(store->get("c", ample()).take(), "two");
}

TEST_P(StoreConformance, ConcurrentCompareSetsHaveOneWinner) {
  constexpr int threads = 8, rounds = 30;
  std::atomic<int> wins = 0;
  in_threads(threads, [&](int me, Store& store) {
    for (int round = 0; round < rounds; ++round) {
      const std::string key = "round/" + std::to_string(round), mine = "thread " + std::to_string(me);
      if (store.compare_set(key, "", mine, ample()).take() == mine) ++wins;
    }
  });
  EXPECT_EQ(wins, rounds);
}

// Threads that increment a counter with compare_set lose no increment.
TEST_P(StoreConformance, ConcurrentCompareSetsChain) {
  constexpr int threads = 6, each = 25;
  ASSERT_TRUE(open()->set("chain", "0", ample()).ok());
  in_threads(threads, [&](int me, Store& store) {
    for (int i = 0; i < each; ++i) {
      for (;;) {
        const std::string before = store.get("chain", ample()).take();
        const std::string number = before.substr(0, before.find(' '));
        const std::string after =
            std::to_string(std::stoi(number) + 1) + " by " + std::to_string(me) + "," + std::to_string(i);
        if (store.compare_set("chain", before, after, ample()).take() == after) break;
      }
    }
  });
  EXPECT_TRUE(open()->get("chain", ample()).take().starts_with(std::to_string(threads * each) + " "));
}

TEST_P(StoreConformance, DeletedKeysAreGone) {
  const auto store = open();
  EXPECT_FALSE(store->delete_key("d", ample()).take());
  ASSERT_TRUE(store->set("d", "x", ample()).ok());
  EXPECT_TRUE(store->exists("d", ample()).take());
  EXPECT_TRUE(store->delete_key("d", ample()).take());
  EXPECT_FALSE(store->exists("d", ample()).take());
  EXPECT_FALSE(store->delete_key("d", ample()).take());
  EXPECT_EQ(store->get("d", soon()).status().code(), Code::timeout);
  EXPECT_EQ(store->add("d", 3, ample()).take(), 3);
}

TEST_P(StoreConformance, AThousandKeys) {
  const auto store = open();
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) keys.push_back("key/" + std::to_string(i));
  for (const std::string& key : keys) ASSERT_TRUE(store->set(key, "value of " + key, ample()).ok());
  const std::vector<std::string> values = open()->get_many(keys, ample()).take();
  ASSERT_EQ(values.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(values[i], "value of " + keys[i]);
  keys.push_back("key/none");
  EXPECT_NE(store->wait(keys, soon()).message().find("key/none"), std::string::npos);
}

TEST_P(StoreConformance, MoreKeysThanFitARequest) {
  const auto store = open();
  std::vector<std::string> keys(5000, "same");
  keys[4321] = "other";
  ASSERT_TRUE(store->set("same", "s", ample()).ok());
  ASSERT_TRUE(store->set("other", "o", ample()).ok());
  const std::vector<std::string> values = store->get_many(keys, ample()).take();
  ASSERT_EQ(values.size(), keys.size());
  EXPECT_EQ(values[4321], "o");
  EXPECT_EQ(values.back(), "s");
}

TEST_P(StoreConformance, LargeValues) {
  const std::string mebibyte(std::size_t{1} << 20, 'm');
  in_threads(4, [&](int me, Store& store) {
    const std::string value = mebibyte + std::to_string(me);
    ASSERT_TRUE(store.set("large/" + std::to_string(me), value, ample()).ok());
    EXPECT_TRUE(store.get("large/" + std::to_string(me), ample()).take() == value);
  });
  const std::string largest(max_store_value_bytes, 'x');
  const auto store = open();
  std::vector<std::string> keys;
  for (int i = 0; i < 4; ++i) {
    keys.push_back("largest/" + std::to_string(i));
    ASSERT_TRUE(store->set(keys.back(), largest, ample()).ok());
  }
  // The values together are larger than the limit of one response.
  const std::vector<std::string> values = store->get_many(keys, ample()).take();
  ASSERT_EQ(values.size(), keys.size());
  for (const std::string& value : values) EXPECT_TRUE(value == largest);
  EXPECT_TRUE(store->compare_set(keys[0], largest, largest, ample()).take() == largest);
}

TEST_P(StoreConformance, LimitsAreErrorsNotTruncations) {
  const auto store = open();
  const std::string long_key(max_store_key_bytes + 1, 'k');
  const std::string large_value(max_store_value_bytes + 1, 'v');
  EXPECT_EQ(store->set("", "x", ample()).code(), Code::invalid_argument);
  EXPECT_EQ(store->get("", ample()).status().code(), Code::invalid_argument);
  EXPECT_EQ(store->set(long_key, "x", ample()).code(), Code::invalid_argument);
  EXPECT_EQ(store->get(long_key, ample()).status().code(), Code::invalid_argument);
  EXPECT_EQ(store->wait(std::vector<std::string>{"a", long_key}, ample()).code(), Code::invalid_argument);
  EXPECT_EQ(store->set("v", large_value, ample()).code(), Code::invalid_argument);
  EXPECT_EQ(store->compare_set("v", "", large_value, ample()).status().code(), Code::invalid_argument);
  EXPECT_FALSE(store->exists("v", ample()).take());
}

TEST_P(StoreConformance, OneHandleServesManyThreads) {
  const auto store = open();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) EXPECT_TRUE(store->add("shared", 1, ample()).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->get("shared", ample()).take(), "400");
}

TEST_P(StoreConformance, NothingToWaitFor) {
  EXPECT_TRUE(open()->wait({}, soon()).ok());
  EXPECT_TRUE(open()->get_many({}, soon()).take().empty());
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance,
                         testing::Values(memory_store(), prefix_store(), tcp_store(), tcp_prefix_store()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace tutti::test
