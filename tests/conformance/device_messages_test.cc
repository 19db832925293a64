// Tests messages in the memory of CUDA devices, which are staged through the host (docs/seams/memory.md). The
// devices are those of the fake CUDA, whose memory the host cannot access. device_message_endings_test.cc
// tests how such messages fail.

#include "tests/conformance/device_messages.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::HasSubstr;

using DeviceMessages = DeviceMessagesOnEachTransport;

// Returns `count` elements that depend on the sender and on the place.
std::vector<int> elements(int rank, std::size_t count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 1000 * rank);
  return all;
}

TEST_P(DeviceMessages, BothEndsMayUseAnyMemory) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    const int next = (comm.rank() + 1) % comm.size();
    const int previous = (comm.rank() + comm.size() - 1) % comm.size();
    for (const std::size_t count : {1u, 15u, 16u, 17u, 1000u, 20'000u}) {
      for (const int where : {1, 2, 3}) {  // one bit for the memory of each end
        const std::vector<int> given = elements(comm.rank(), count);
        std::vector<int> taken(count, -1);
        const IntArray from(comm.rank() % 2, given), to(1 - comm.rank() % 2, taken);
        Work receive = comm.recv((where & 1) != 0 ? to.buffer() : Buffer(taken), previous, 7);
        comm.send((where & 2) != 0 ? ConstBuffer(from.buffer()) : ConstBuffer(given), next, 7).wait();
        receive.wait();
        EXPECT_EQ(receive.received().source, previous);
        EXPECT_EQ(receive.received().bytes, count * sizeof(int));
        ASSERT_EQ((where & 1) != 0 ? to.values() : taken, elements(previous, count)) << count << " " << where;
        ASSERT_EQ(from.values(), given);
      }
    }
  });
}

TEST_P(DeviceMessages, ABatchMayUseSeveralDevicesAndTheHost) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    constexpr std::size_t count = 500;
    std::vector<std::unique_ptr<IntArray>> out, in;
    std::vector<std::vector<int>> host(3, std::vector<int>(count, -1));
    std::vector<Transfer> transfers;
    for (int peer = 0; peer < comm.size(); ++peer) {
      out.push_back(std::make_unique<IntArray>(peer % 2, elements(comm.rank() + 10 * peer, count)));
      in.push_back(std::make_unique<IntArray>((peer + comm.rank()) % 2, std::vector<int>(count, -1)));
      transfers.push_back({Transfer::Direction::send, out.back()->buffer(), peer, 1});
      transfers.push_back({Transfer::Direction::send, out.back()->buffer(), peer, 2});
      transfers.push_back({Transfer::Direction::recv, in.back()->buffer(), peer, 1});
      transfers.push_back({Transfer::Direction::recv, host[static_cast<std::size_t>(peer)], peer, 2});
    }
    comm.batch(transfers).wait();
    for (std::size_t peer = 0; peer < 3; ++peer) {
      const std::vector<int> expected = elements(static_cast<int>(peer) + 10 * comm.rank(), count);
      EXPECT_EQ(in[peer]->values(), expected);
      EXPECT_EQ(host[peer], expected);
    }
  });
}

TEST_P(DeviceMessages, WildcardsAndShortMessagesAndEmptyOnes) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    const int peer = 1 - comm.rank();
    const IntArray from(0, elements(comm.rank(), 30)), to(1, std::vector<int>(100, -1));
    Buffer empty = from.buffer();
    empty.count = 0;
    Work receive = comm.recv(to.buffer());
    comm.send(from.buffer(), peer, 4711).wait();
    receive.wait();
    EXPECT_EQ(receive.received().source, peer);
    EXPECT_EQ(receive.received().tag, 4711u);
    EXPECT_EQ(receive.received().bytes, 30 * sizeof(int));
    EXPECT_THAT(to.view().first(30), testing::ElementsAreArray(elements(peer, 30)));
    EXPECT_THAT(to.view().subspan(30), Each(-1));
    Work nothing = comm.recv(to.buffer(), peer, 3);
    comm.send(empty, peer, 3).wait();
    nothing.wait();
    EXPECT_EQ(nothing.received().bytes, 0u);
  });
}

TEST_P(DeviceMessages, ATooSmallReceiveFailsAlone) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    const IntArray data(0, std::vector<int>(comm.rank() == 0 ? 100 : 10, comm.rank()));
    if (comm.rank() == 0) {
      EXPECT_TRUE(outcome(comm.send(data.buffer(), 1)).ok());
    } else {
      EXPECT_EQ(outcome(comm.recv(data.buffer(), 0)).code(), Code::mismatch);
      EXPECT_THAT(data.values(), Each(1));
    }
    comm.barrier().wait();
    EXPECT_TRUE(comm.status().ok());
  });
}

// Copies are held back until all messages have been issued. Those from host memory need no copy.
TEST_P(DeviceMessages, MessagesMatchInTheOrderOfIssue) {
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    constexpr int count = 20;
    std::vector<std::unique_ptr<IntArray>> there;
    std::vector<std::vector<int>> here(count);
    std::vector<Work> works;
    const IntArray first(0, {0});
    comm.batch(std::array{Transfer{Transfer::Direction::recv, first.buffer(), comm.rank(), 1},
                          Transfer{Transfer::Direction::send, first.buffer(), comm.rank(), 1}})
        .wait();
    together.arrive_and_wait();
    if (comm.rank() == 0) fake_cuda_hold_copies(true);
    for (int i = 0; i < count; ++i) {
      const std::vector<int> values(static_cast<std::size_t>(i) * 40 + 1, comm.rank() == 0 ? i : -1);
      here[static_cast<std::size_t>(i)] = values;
      there.push_back(std::make_unique<IntArray>(i % 2, values));
      const bool staged = i % 3 == comm.rank();
      const Buffer buffer = staged ? there.back()->buffer() : Buffer(here[static_cast<std::size_t>(i)]);
      works.push_back(comm.rank() == 0 ? comm.send(buffer, 1, 5) : comm.recv(buffer, 0, 5));
    }
    together.arrive_and_wait();
    std::this_thread::sleep_for(milliseconds(20));
    if (comm.rank() == 0) fake_cuda_hold_copies(false);
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      ASSERT_TRUE(outcome(works[at]).ok()) << outcome(works[at]).to_string();
      ASSERT_THAT(i % 3 == comm.rank() ? there[at]->values() : here[at], Each(i));
    }
  });
}

// Rank 0 still copies what it sends to rank 1. That must not delay its messages with rank 2.
TEST_P(DeviceMessages, ACopyHoldsUpNoMessagesWithOtherRanks) {
  Cluster ranks(3, options());
  std::barrier together(3);
  ranks.run([&](Communicator& comm) {
    const IntArray data(0, {comm.rank()});
    int here = comm.rank();
    if (comm.rank() == 0) {
      comm.batch(std::array{Transfer{Transfer::Direction::recv, data.buffer(), 0, 1},
                            Transfer{Transfer::Direction::send, data.buffer(), 0, 1}})
          .wait();
      fake_cuda_hold_copies(true);
      Work held = comm.send(data.buffer(), 1, 5);
      Work receive = comm.recv(std::span(&here, 1), 2, 5);
      comm.send(std::span(&here, 1), 2, 5).wait();
      receive.wait();
      EXPECT_EQ(here, 2);
      EXPECT_FALSE(held.done());
      fake_cuda_hold_copies(false);
      held.wait();
    } else if (comm.rank() == 1) {
      comm.recv(std::span(&here, 1), 0, 5).wait();
      EXPECT_EQ(here, 0);
    } else {
      comm.recv(std::span(&here, 1), 0, 5).wait();
      here = 2;
      comm.send(std::span(&here, 1), 0, 5).wait();
    }
  });
}

TEST_P(DeviceMessages, ManyInFlightWhileNoThreadWaitsForTheDevice) {
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    std::vector<std::unique_ptr<IntArray>> out, in;
    std::vector<Work> works;
    for (int i = 0; i < 200; ++i) {
      const auto count = static_cast<std::size_t>(i * 13 % 300 + 1);
      out.push_back(std::make_unique<IntArray>(i % 2, std::vector<int>(count, i)));
      in.push_back(std::make_unique<IntArray>(i % 2, std::vector<int>(300, -1)));
      const auto tag = static_cast<std::uint64_t>(i);
      works.push_back(comm.send(out.back()->buffer(), 1 - comm.rank(), tag));
      works.push_back(comm.recv(in.back()->buffer(), 1 - comm.rank(), 199 - tag));
    }
    for (const Work& work : works) ASSERT_TRUE(outcome(work).ok());
    for (int i = 0; i < 200; ++i) {
      const auto sent = static_cast<std::size_t>((199 - i) * 13 % 300 + 1);
      const std::span<int> taken = in[static_cast<std::size_t>(i)]->view();
      ASSERT_THAT(taken.first(sent), Each(199 - i));
      ASSERT_THAT(taken.subspan(sent), Each(-1));
    }
    together.arrive_and_wait();
    EXPECT_EQ(fake_cuda_counts().host_synchronisations, 0);
    together.arrive_and_wait();
  });
}

// Each rank sends what a slow kernel writes, and a further kernel reads what arrives.
TEST_P(DeviceMessages, MessagesFollowAStreamAndAStreamWaitsForThem) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    const int peer = 1 - comm.rank();
    const IntArray out(0, std::vector<int>(50, -1)), in(0, std::vector<int>(50, -1));
    const std::unique_ptr<cuda::Stream> stream = new_stream(out);
    for (int round = 0; round < 10; ++round) {
      struct Step {
        const IntArray& array;
        int value = 0;
        int seen = -1;
      } writing{out, 10 * round + comm.rank()}, reading{in}, clearing{in, -1};
      const auto write = [](void* self) {
        std::this_thread::sleep_for(milliseconds(2));
        auto& step = *static_cast<Step*>(self);
        std::ranges::fill(step.array.view(), step.value);
      };
      const auto read = [](void* self) {
        auto& step = *static_cast<Step*>(self);
        step.seen = step.array.view()[49];
      };
      {
        const cuda::Device::Current current(out.device());
        ASSERT_EQ(cuLaunchHostFunc(stream->handle(), write, &writing), cuda::success);
        ASSERT_EQ(cuLaunchHostFunc(stream->handle(), write, &clearing), cuda::success);
      }
      Work receive = comm.recv(in.buffer(), peer, 1, {.stream = stream->handle()});
      Work send = comm.send(out.buffer(), peer, 1, {.stream = stream->handle()});
      receive.wait_on(stream->handle());
      send.wait_on(stream->handle());
      {
        const cuda::Device::Current current(out.device());
        ASSERT_EQ(cuLaunchHostFunc(stream->handle(), read, &reading), cuda::success);
      }
      ASSERT_EQ(in.device().api().StreamSynchronize(stream->handle()), cuda::success);
      ASSERT_EQ(reading.seen, 10 * round + peer);
      send.wait();
      receive.wait();
    }
  });
}

TEST_P(DeviceMessages, StreamsThatNoMessageCanFollowAreRefusedAtOnce) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    const IntArray data(0, {1}), other(1, {1});
    int here = 0;
    const std::unique_ptr<cuda::Stream> stream = new_stream(other);
    const CallOptions follows{.stream = stream->handle()};
    const Work foreign = comm.send(data.buffer(), 0, 0, follows);
    EXPECT_TRUE(foreign.done());
    EXPECT_EQ(foreign.status().code(), Code::invalid_argument);
    EXPECT_THAT(foreign.status().message(), HasSubstr("the stream is of CUDA device 1"));
    const Work no_device = comm.send(std::span(&here, 1), 0, 0, follows);
    EXPECT_TRUE(no_device.done());
    EXPECT_EQ(no_device.status().code(), Code::unsupported);
    const Work region = comm.recv(data.buffer(), 0, 0, {.region = &here});
    EXPECT_EQ(region.status().code(), Code::unsupported);
    EXPECT_TRUE(comm.status().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(All, DeviceMessages, testing::ValuesIn(all_transports()), name_of_transport);

}  // namespace
}  // namespace tutti::test
