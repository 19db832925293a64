#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include "transport/shm/pipe.h"

namespace tutti::shm {
namespace {

struct Ring {
  explicit Ring(std::size_t bytes) : data(bytes) {
    out.open(lane, data);
    in.open(lane, data);
  }
  Lane lane{};
  std::vector<std::byte> data;
  RingWriter out;
  RingReader in;
};

TEST(ShmRing, IsEmptyAtFirstAndFullAtItsSize) {
  Ring ring(4096);
  EXPECT_TRUE(ring.in.readable().empty());
  EXPECT_FALSE(ring.in.has_news());
  EXPECT_EQ(ring.out.room().size(), 4096u);
  ring.out.advance(4095);  // rounds up to whole lines
  EXPECT_TRUE(ring.out.room().empty());
  EXPECT_FALSE(ring.out.has_room());
  EXPECT_FALSE(ring.in.has_news());
  ring.out.publish();
  EXPECT_TRUE(ring.in.has_news());
  EXPECT_EQ(ring.in.readable().size(), 4096u);
  ring.in.advance(512);
  EXPECT_TRUE(ring.in.owes_room());
  EXPECT_FALSE(ring.out.has_room());
  ring.in.release();
  EXPECT_TRUE(ring.out.has_room());
  EXPECT_EQ(ring.out.room().size(), 512u);
}

TEST(ShmRing, PiecesEndWhereTheMemoryDoes) {
  Ring ring(4096);
  ring.out.advance(4096 - 128);
  ring.out.publish();
  ring.in.readable();
  ring.in.advance(4096 - 128);
  ring.in.release();
  EXPECT_EQ(ring.out.room().size(), 128u);
  ring.out.advance(128);
  EXPECT_EQ(ring.out.room().size(), 4096u - 128u);
  ring.out.advance(64);
  ring.out.publish();
  EXPECT_EQ(ring.in.readable().size(), 128u);
  ring.in.advance(128);
  EXPECT_EQ(ring.in.readable().size(), 64u);
}

TEST(ShmRing, ImpossiblePositionsOfThePeerAreNotBelieved) {
  for (const std::uint64_t tail : {std::uint64_t{4096 + 64}, std::uint64_t{1}, ~std::uint64_t{63}}) {
    Ring ring(4096);
    ring.lane.tail = tail;
    EXPECT_TRUE(ring.in.readable().empty());
    EXPECT_TRUE(ring.in.broken());
  }
  for (const std::uint64_t head : {std::uint64_t{4096 + 64}, std::uint64_t{1}, ~std::uint64_t{63}}) {
    Ring ring(4096);
    ring.out.advance(4096);
    ring.lane.head = head;
    EXPECT_TRUE(ring.out.room().empty());
    EXPECT_TRUE(ring.out.broken());
  }
}

TEST(ShmRing, CarriesAStreamBetweenTwoThreads) {
  Ring ring(4096);
  constexpr std::size_t total = 1 << 20;
  std::thread writer([&] {
    std::mt19937 random(1);
    for (std::size_t done = 0; done < total;) {
      const auto room = ring.out.room();
      if (room.empty()) {
        std::this_thread::yield();
        continue;
      }
      const std::size_t bytes = std::min({room.size(), (random() % 8 + 1) * line_bytes, total - done});
      for (std::size_t i = 0; i < bytes; ++i) room[i] = static_cast<std::byte>((done + i) % 251);
      ring.out.advance(bytes);
      ring.out.publish();
      done += bytes;
    }
  });
  std::size_t wrong = 0;
  for (std::size_t done = 0; done < total;) {
    const auto bytes = ring.in.readable();
    if (bytes.empty()) {
      std::this_thread::yield();
      continue;
    }
    for (std::size_t i = 0; i < bytes.size(); ++i)
      wrong += bytes[i] != static_cast<std::byte>((done + i) % 251);
    ring.in.advance(bytes.size());
    if (ring.in.owes_room()) ring.in.release();
    done += bytes.size();
  }
  writer.join();
  EXPECT_EQ(wrong, 0u);
}

// A forked child, such as a data loader's, must not write to memory that its parent's peers read.
TEST(ShmSegment, IsNotSharedWithForkedChildren) {
  Segment segment;
  ASSERT_TRUE(segment.create(page_bytes()).ok());
  segment.memory()[0] = std::byte{7};
  const pid_t child = fork();
  if (child == 0) {
    const bool fresh = segment.memory()[0] == std::byte{0};
    segment.memory()[0] = std::byte{9};
    _exit(fresh ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(segment.memory()[0], std::byte{7});
}

TEST(ShmPipe, NeedsASensibleRing) {
  for (const std::uint64_t ring :
       {std::uint64_t{0}, std::uint64_t{2048}, std::uint64_t{5000}, ~std::uint64_t{0}}) {
    EXPECT_FALSE(Pipe::is_ring_size(ring)) << ring;
    EXPECT_EQ(Pipe::map(Descriptor(), ring, 1).status().code(), Code::protocol_error);
  }
}

// Two threads sleep whenever they have no work, and only the bell wakes them. A lost wake-up would
// make the test hang.
TEST(ShmPipe, NoWakeUpIsLost) {
  auto first = Pipe::create(4096, 1).take();
  auto second = Pipe::map(Descriptor(dup(first->descriptor())), 4096, 1).take();
  ASSERT_TRUE(first->is_proved());
  Bell bells[2];
  ASSERT_TRUE(bells[0].create().ok() && bells[1].create().ok());
  first->set_rope(bells[1].rope());
  second->set_rope(bells[0].rope());
  constexpr int trips = 5000;
  const auto await = [](Pipe& pipe, Bell& bell) {
    while (pipe.in().readable().empty()) {
      pipe.announce_sleep();
      if (!pipe.in().has_news()) {
        pollfd heard{bell.descriptor(), POLLIN, 0};
        ASSERT_EQ(poll(&heard, 1, 60'000), 1) << "a wake-up was lost";
        bell.on_ready(0);
      }
      pipe.cancel_sleep();
    }
    pipe.in().advance(line_bytes);
    pipe.in().release();
  };
  const auto send = [](Pipe& pipe) {
    ASSERT_FALSE(pipe.out().room().empty());
    pipe.out().advance(line_bytes);
    pipe.out().publish();
    pipe.wake_peer();
  };
  std::thread other([&] {
    for (int i = 0; i < trips && !::testing::Test::HasFailure(); ++i) {
      await(*second, bells[1]);
      send(*second);
    }
  });
  for (int i = 0; i < trips && !::testing::Test::HasFailure(); ++i) {
    send(*first);
    await(*first, bells[0]);
  }
  other.join();
}

}  // namespace
}  // namespace tutti::shm
