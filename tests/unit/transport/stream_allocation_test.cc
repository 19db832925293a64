#include "tests/unit/transport/counting_new.h"
#include "tests/unit/transport/stream_pair.h"
#include "transport/mesh/loopback.h"

namespace tutti {
namespace {

// `OneReceive` gives an arrival to `op`, or keeps the arrival if `op` is null.
class OneReceive final : public TransportOwner {
 public:
  const PeerInfo& peer(int) const override { return peer_; }
  int size() const override { return 1; }
  int rank() const override { return 0; }
  Channel* on_incoming(int, Transport&) override { return nullptr; }
  void on_unusable(int, Transport&, const Status&) override {}
  RecvOp* on_arrival(Arrival& arrival) override {
    kept = op == nullptr ? &arrival : nullptr;
    return std::exchange(op, nullptr);
  }
  void on_withdrawn(Arrival&) override {}
  void on_abort(int, std::uint32_t, const Status&) override {}
  void on_channel_down(int, const Status&) override {}

  RecvOp* op = nullptr;
  Arrival* kept = nullptr;

 private:
  PeerInfo peer_;
};

// This test counts calls of `operator new`. The blocks of the eager pool are not counted, since they come
// from `std::aligned_alloc`.
TEST(StreamAllocation, NonePerMessageInSteadyState) {
  OneReceive owner;
  LoopbackChannel channel(owner, {});
  for (const std::size_t bytes : {0u, 8u, 30'000u, 1'000'000u}) {
    TestSend send(bytes);
    TestRecv recv(bytes);
    std::size_t before = 0;
    for (int i = 0; i < 200; ++i) {
      if (i == 100) before = allocations();
      if (i % 2 == 0) {
        owner.op = &recv;
        channel.send(send);
      } else {
        channel.send(send);
        channel.claim(*owner.kept, recv);
      }
    }
    EXPECT_EQ(send.completions, 200);
    EXPECT_EQ(recv.completions, 200);
    EXPECT_EQ(allocations(), before) << bytes << " bytes";
  }
}

}  // namespace
}  // namespace tutti
