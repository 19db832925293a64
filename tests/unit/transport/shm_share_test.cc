#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/transport/shm_world.h"
#include "transport/shm/shared_memory.h"

namespace tutti::shm {
namespace {

using ::testing::HasSubstr;

// A `Group` has one request for each rank of a world, all for the same segment.
struct Group {
  std::deque<Wish> wishes;

  Group(World& world, std::uint64_t key, std::uint64_t bytes) {
    for (int rank = 0; rank < world.size(); ++rank) {
      wishes.emplace_back(world[rank], ranks(world.size()), key, bytes);
    }
  }
  void post() {
    for (Wish& wish : wishes) wish.post();
  }
  void expect_shared() {
    for (Wish& wish : wishes) {
      ASSERT_TRUE(wish.wait().ok()) << wish.status.to_string();
      EXPECT_EQ(wish.completions, 1);
      EXPECT_EQ(wish.segment->memory().size(), wish.bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wish.segment->memory().data()) % 4096, 0u);
    }
  }
  // Checks that all ranks see what each rank writes.
  void expect_same_memory() {
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      EXPECT_EQ(wishes[i].segment->memory()[i], std::byte{0});
      wishes[i].segment->memory()[i] = static_cast<std::byte>(i + 1);
    }
    for (Wish& wish : wishes) {
      for (std::size_t i = 0; i < wishes.size(); ++i) {
        EXPECT_EQ(wish.segment->memory()[i], static_cast<std::byte>(i + 1));
      }
    }
  }
};

class ShareSizes : public ::testing::TestWithParam<int> {};

TEST_P(ShareSizes, AllMembersGetTheSameMemory) {
  World world(GetParam());
  Group group(world, 7, 10'000);
  group.post();
  group.expect_shared();
  group.expect_same_memory();
}

INSTANTIATE_TEST_SUITE_P(Shm, ShareSizes, ::testing::Values(1, 2, 3, 4, 7, 8, 16, 64));

TEST(ShmShare, MembersMayAskBeforeTheLeader) {
  World world(3);
  Group group(world, 7, 100), other(world, 8, 100);
  for (std::size_t i : {1u, 2u}) {
    group.wishes[i].post();
    other.wishes[i].post();
  }
  world[1].until([] { return true; });
  group.wishes[0].post();
  group.expect_shared();
  EXPECT_EQ(other.wishes[1].completions, 0);
  other.wishes[0].post();
  other.expect_shared();
  group.expect_same_memory();
  other.expect_same_memory();
}

TEST(ShmShare, ABellWakesASleeper) {
  World world(3);
  Group group(world, 7, 100);
  group.post();
  group.expect_shared();
  // A `Watcher` reads a byte of the segment whenever it is polled, like a SharedExecutor.
  class Watcher final : public Pollable {
   public:
    Watcher(Driver& driver, std::byte* word) : driver_(driver), word_(*word) {}
    bool poll() override {
      if (done.load() != 0 || word_.load() == std::byte{0}) return false;
      done.store(1);
      driver_.notify(done);
      return true;
    }
    bool prepare_sleep() override { return poll(); }
    std::atomic<std::uint32_t> done{0};

   private:
    Driver& driver_;
    std::atomic_ref<std::byte> word_;
  };
  Driver& driver = world[2].driver;
  for (int i = 0; i < 20; ++i) {
    const auto place = static_cast<std::size_t>(i);
    Watcher watcher(driver, &group.wishes[2].segment->memory()[place]);
    world[2].drive([&] {
      driver.assert_driven();
      driver.add(watcher);
    });
    std::thread waiter([&] { EXPECT_TRUE(driver.wait(watcher.done, conformance::patience())); });
    const std::size_t from = place % 2;
    std::atomic_ref(group.wishes[from].segment->memory()[place]).store(std::byte{1});
    group.wishes[from].segment->bell(2).ring();
    waiter.join();
    world[2].drive([&] {
      driver.assert_driven();
      driver.remove(watcher);
    });
  }
}

// Returns how many bytes of a segment are allocated.
std::size_t allocated(const Segment& segment) {
  struct stat info {};
  EXPECT_EQ(fstat(segment.descriptor(), &info), 0);
  return static_cast<std::size_t>(info.st_blocks) * 512;
}

TEST(ShmShare, PagesThatAreNotProvidedAreAllocatedWhenTheyAreTouched) {
  const std::size_t page = page_bytes();
  ShareRequest request;
  request.members = ranks(3);
  request.bytes = 1000 * page;
  request.provided = 10 * page;
  Segment segment;
  ASSERT_TRUE(segment.create(segment_bytes(request)).ok());
  for (std::size_t member = 0; member < 3; ++member)
    ASSERT_TRUE(provide_share(segment, member, request).ok());
  const std::size_t provided = front_bytes(3) + 10 * page;
  EXPECT_EQ(allocated(segment), provided);
  segment.memory()[500 * page] = std::byte{1};
  EXPECT_EQ(allocated(segment), provided + page);
  segment.discard(segment.memory().subspan(9 * page, 600 * page));
  EXPECT_EQ(allocated(segment), 9 * page);
  EXPECT_EQ(segment.memory()[500 * page], std::byte{0});
}

TEST(ShmShare, SegmentsGoInAnyOrder) {
  World world(3);
  Group group(world, 7, 100), again(world, 8, 100);
  group.post();
  group.expect_shared();
  group.wishes[0].let_go();
  group.wishes[1].let_go();
  again.post();
  again.expect_shared();
  again.wishes[2].let_go();
  EXPECT_TRUE(group.wishes[2].lost.empty());
  EXPECT_TRUE(again.wishes[0].lost.empty());
}

TEST(ShmShare, ADifferentSizeIsRefusedToAll) {
  World world(3);
  Group group(world, 7, 100);
  group.wishes[2].bytes = 200'000;
  group.wishes[0].post();
  group.wishes[2].post();
  EXPECT_EQ(group.wishes[0].wait().code(), Code::mismatch);
  group.wishes[1].post();  // rank 1 also learns of the mismatch, although it asks late
  for (Wish& wish : group.wishes) {
    EXPECT_EQ(wish.wait().code(), Code::mismatch) << wish.status.to_string();
    EXPECT_THAT(wish.status.message(), HasSubstr("rank 2 (host host2, pid 1002)"));
  }
}

TEST(ShmShare, WhoDoesNotComeIsNamed) {
  World world(3);
  Group group(world, 7, 100);
  group.wishes[0].deadline = Deadline::after(std::chrono::milliseconds(50));
  group.wishes[0].post();
  group.wishes[1].post();
  for (std::size_t i : {0u, 1u}) {
    EXPECT_EQ(group.wishes[i].wait().code(), Code::timeout) << group.wishes[i].status.to_string();
    EXPECT_THAT(group.wishes[i].status.message(), HasSubstr("rank 2 (host host2, pid 1002)"));
  }
}

// If one rank gives up a request for a segment, the request fails on all ranks, even on those that make it
// later.
TEST(ShmShare, IsGivenUpForAll) {
  const Status why(Code::aborted, "it is no longer needed");
  for (const std::size_t who : {0u, 1u}) {
    World world(3);
    Group group(world, 7, 100);
    group.wishes[0].post();
    group.wishes[1].post();
    Wish& wish = group.wishes[who];
    wish.node.drive([&] { wish.node.mesh.cancel_share(wish, why); });
    EXPECT_EQ(wish.status.to_string(), why.to_string());
    wish.node.drive([&] { wish.node.mesh.cancel_share(wish, why); });
    for (const std::size_t i : {0u, 1u, 2u}) {
      if (i == 2) group.wishes[i].post();
      EXPECT_EQ(group.wishes[i].wait().code(), Code::aborted) << group.wishes[i].status.to_string();
      EXPECT_THAT(group.wishes[i].status.message(), HasSubstr("no longer needed"));
      EXPECT_EQ(group.wishes[i].completions, 1);
    }
  }
}

TEST(ShmShare, ALeaderThatHasGoneIsLost) {
  World world(2);
  world[0].shut_down();
  Wish wish(world[1], {0, 1}, 7, 100);
  wish.post();
  EXPECT_EQ(wish.wait().code(), Code::peer_lost) << wish.status.to_string();
  EXPECT_THAT(wish.status.message(), HasSubstr("rank 0 (host host0, pid 1000)"));
}

TEST(ShmShare, ASegmentOutlivesItsTransport) {
  auto world = std::make_unique<World>(2);
  Group group(*world, 7, 100);
  group.post();
  group.expect_shared();
  (*world)[0].shut_down();
  (*world)[1].shut_down();
  group.expect_same_memory();
  group.wishes[0].segment->bell(1).ring();
}

}  // namespace
}  // namespace tutti::shm
