#include "collectives/record/history.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace tutti {
namespace {

Fingerprint call_of(std::uint64_t number) {
  return {.kind = CollectiveKind::broadcast, .root = static_cast<std::int32_t>(number), .count = number};
}

History::Entry operation(std::uint64_t number) {
  return {.number = number, .call = call_of(number), .algorithm = 7, .issued = 100, .started = 200};
}

TEST(History, KnowsWhatIsLiveAndWhatIsOver) {
  History history(8, History::Full::grow);
  EXPECT_EQ(history.find(0).state, History::State::none);
  EXPECT_FALSE(history.find(0).newer);
  history.begin(operation(3));
  history.at_once(4, call_of(4), 9);
  ASSERT_EQ(history.find(3).state, History::State::live);
  EXPECT_EQ(*history.find(3).call, call_of(3));
  EXPECT_EQ(history.find(4).state, History::State::finished);
  history.end(3, History::State::failed, 0, 300);
  EXPECT_EQ(history.find(3).state, History::State::failed);
  history.at_once(11, call_of(11), 9);  // replaces operation 3
  EXPECT_EQ(history.find(3).call, nullptr);
  EXPECT_TRUE(history.find(3).newer);
  EXPECT_FALSE(history.find(19).newer);
}

TEST(History, TellsTimesWhereItKnowsThem) {
  History history(8, History::Full::grow);
  history.at_once({.number = 0, .call = call_of(0), .started = 50}, 60);
  history.begin(operation(1));
  history.at_once(2, call_of(2), 9);
  history.begin(operation(3));
  history.end(3, History::State::finished, 150, 300);
  const auto entries = history.entries();
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].started, 50);
  EXPECT_EQ(entries[0].ended, 60);
  EXPECT_EQ(entries[1].state, History::State::live);
  EXPECT_EQ(entries[1].started, 200);
  EXPECT_EQ(entries[1].ended, 0);
  EXPECT_EQ(entries[2].issued, 0);
  EXPECT_EQ(entries[2].algorithm, 9);
  EXPECT_EQ(entries[3].issued, 100);
  EXPECT_EQ(entries[3].ended, 300);
  for (const auto& entry : entries) EXPECT_EQ(entry.call, call_of(entry.number));
}

// If more operations are in flight than fit, the history grows and forgets none of them.
TEST(History, GrowsForWhatIsLive) {
  History history(4, History::Full::grow);
  for (std::uint64_t i = 0; i < 100; ++i) history.begin(operation(i));
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(history.find(i).state, History::State::live);
    EXPECT_EQ(*history.find(i).call, call_of(i));
  }
  EXPECT_EQ(history.entries().size(), 100u);
  for (std::uint64_t i = 0; i < 100; ++i) history.end(i, History::State::finished, 0, 1);
  EXPECT_EQ(history.find(99).state, History::State::finished);
}

TEST(History, ForgetsWhereItMay) {
  History history(4, History::Full::forget);
  for (std::uint64_t i = 0; i < 10; ++i) history.begin(operation(i));
  history.end(2, History::State::finished, 0, 1);  // the history forgot operation 2 long ago
  const auto entries = history.entries();
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries.front().number, 6u);
  for (const auto& entry : entries) EXPECT_EQ(entry.state, History::State::live);
}

// A reader gets only complete entries, even while a writer overwrites them.
TEST(History, CanBeReadWhileItIsWritten) {
  History history(16, History::Full::grow);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> read{0};
  std::thread reader([&] {
    while (!over.load()) {
      for (const auto& entry : history.entries()) {
        ASSERT_EQ(entry.call, call_of(entry.number));
        if (entry.issued != 0) {
          ASSERT_EQ(entry.issued, static_cast<History::Time>(entry.number));
        }
        read.fetch_add(1);
      }
    }
  });
  for (std::uint64_t i = 1; i < 2'000'000 && (i < 100'000 || read.load() < 1000); ++i) {
    if (i % 3 == 0) {
      history.at_once(i, call_of(i), 1);
    } else {
      const auto time = static_cast<History::Time>(i);
      history.begin({.number = i, .call = call_of(i), .issued = time, .started = time});
      if (i % 1000 != 1) history.end(i, History::State::finished, 0, time);
    }
    if (i % 1000 == 13) history.end(i - 12, History::State::finished, 0, 1);
  }
  over.store(true);
  reader.join();
}

}  // namespace
}  // namespace tutti
