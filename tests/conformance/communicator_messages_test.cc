// Tests point-to-point messages, and the number of messages and connections that operations need.

#include <vector>

#include "tests/conformance/on_each_transport.h"

namespace tutti::test {
namespace {

class CommunicatorMessages : public OnEachTransport {};

TEST_P(CommunicatorMessages, SmallAllReduceOnTwoRanksIsOneFrameEachWay) {
  const bool shared = GetParam() == "shared" || GetParam() == "shm";
  Cluster ranks(2, options());
  ranks.run([shared](Communicator& comm) {
    std::int64_t value = comm.rank();
    comm.all_reduce(std::span(&value, 1), ReduceOp::sum).wait();  // this makes the connection
    comm.barrier().wait();
    const auto before = comm.statistics();
    constexpr int rounds = 10;
    for (int i = 0; i < rounds; ++i) comm.all_reduce(std::span(&value, 1), ReduceOp::sum).wait();
    const auto after = comm.statistics();
    if (shared) {  // shared memory needs no message at all
      EXPECT_EQ(after.messages_sent, 0u);
      EXPECT_EQ(after.connections, 0);
      return;
    }
    EXPECT_EQ(after.messages_sent - before.messages_sent, rounds);
    EXPECT_EQ(after.messages_received - before.messages_received, rounds);
    EXPECT_EQ(after.frames_sent - before.frames_sent, rounds);
    EXPECT_EQ(after.bytes_sent - before.bytes_sent, rounds * sizeof(value));
    EXPECT_EQ(after.connections, 1);
  });
}

TEST_P(CommunicatorMessages, PointToPoint) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    const int next = (comm.rank() + 1) % comm.size();
    const int previous = (comm.rank() + comm.size() - 1) % comm.size();
    std::vector<std::int32_t> out(1000, comm.rank());
    std::vector<std::int32_t> in(2000, -1);
    Work receive = comm.recv(in, previous, 7);
    comm.send(out, next, 7).wait();
    receive.wait();
    EXPECT_EQ(in[999], previous);
    EXPECT_EQ(in[1000], -1);
    EXPECT_EQ(receive.received().source, previous);
    EXPECT_EQ(receive.received().tag, 7u);
    EXPECT_EQ(receive.received().bytes, 4000u);
    // Each rank sends to all ranks, itself included, and receives from any source with any tag.
    for (int peer = 0; peer < comm.size(); ++peer) comm.send(std::span(out).first(1), peer, 100 + peer);
    int sum = 0;
    for (int i = 0; i < comm.size(); ++i) {
      std::int32_t value = -1;
      Work any = comm.recv(std::span(&value, 1));
      any.wait();
      EXPECT_EQ(any.received().source, value);
      EXPECT_EQ(any.received().tag, 100u + static_cast<unsigned>(comm.rank()));
      sum += value;
    }
    EXPECT_EQ(sum, 3);
  });
}

TEST_P(CommunicatorMessages, ATooSmallReceiveFailsAlone) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<char> data(comm.rank() == 0 ? 100 : 10);
    if (comm.rank() == 0) {
      EXPECT_TRUE(outcome(comm.send(data, 1)).ok());  // only the receiver sees an error
    } else {
      EXPECT_EQ(outcome(comm.recv(data, 0)).code(), Code::mismatch);
    }
    comm.barrier().wait();
    EXPECT_TRUE(comm.status().ok());
  });
}

TEST_P(CommunicatorMessages, BatchExchangesWithEverybody) {
  Cluster ranks(4, options());
  ranks.run([](Communicator& comm) {
    std::vector<std::vector<double>> out(4, std::vector<double>(30'000, comm.rank()));
    std::vector<std::vector<double>> in(4, std::vector<double>(30'000));
    std::vector<Transfer> transfers;
    for (int peer = 0; peer < 4; ++peer) {
      transfers.push_back({Transfer::Direction::send, out[static_cast<std::size_t>(peer)], peer, 1});
      transfers.push_back({Transfer::Direction::recv, in[static_cast<std::size_t>(peer)], peer, 1});
    }
    comm.batch(transfers).wait();
    for (int peer = 0; peer < 4; ++peer) EXPECT_EQ(in[static_cast<std::size_t>(peer)].back(), peer);
  });
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorMessages, testing::ValuesIn(all_transports()), name_of_transport);

}  // namespace
}  // namespace tutti::test
