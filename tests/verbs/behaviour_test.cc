// Tests what a program can expect of verbs, without tutti. The tests run over the provider (devices that
// exist only in this process), and in the virtual machine over Soft-RoCE. They show that the provider does
// what real devices do.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include "tests/verbs/end.h"
#include "tests/verbs/tested_library.h"

namespace tutti::test {
namespace {

constexpr std::size_t large = 300'000;

class Behaviour : public testing::Test {
 protected:
  const verbs::Functions& functions() const { return library_.functions(); }
  void join() { End::join(one_, two_); }
  static void fill(End& end, std::size_t bytes, int seed) {
    for (std::size_t i = 0; i < bytes; ++i)
      end.memory()[i] = static_cast<std::byte>(i * 7 + (i >> 8U) + static_cast<std::size_t>(seed));
  }
  bool same(std::size_t bytes) { return std::memcmp(one_.memory().data(), two_.memory().data(), bytes) == 0; }

  TestedLibrary library_;
  End one_{library_.functions(), "rxe0", {.retries_not_ready = 0}};
  End two_{library_.functions(), "rxe1"};
};

TEST_F(Behaviour, AWriteWithImmediateArrivesInPlace) {
  join();
  fill(one_, large, 1);
  ASSERT_EQ(two_.post_receive(42, 0), 0);
  ASSERT_EQ(one_.post_write_with_immediate(7, large, two_, 0xc0ffee), 0);
  const ibv_wc sent = one_.wait();
  ASSERT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent.wr_id, 7u);
  EXPECT_EQ(sent.opcode, IBV_WC_RDMA_WRITE);
  const ibv_wc received = two_.wait();
  ASSERT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.wr_id, 42u);
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received.byte_len, large);
  EXPECT_EQ(received.qp_num, two_.pair()->qp_num);
  EXPECT_NE(received.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(ntohl(received.imm_data), 0xc0ffeeu);
  EXPECT_TRUE(same(large));
}

// The memory of an inline send may be changed as soon as the send has been posted.
TEST_F(Behaviour, AnInlineSendTakesItsPayloadAlong) {
  join();
  std::memcpy(one_.memory().data(), "inline!", 8);
  ASSERT_EQ(two_.post_receive(1, 64), 0);
  ASSERT_EQ(one_.post_send(2, 8, IBV_SEND_SIGNALED | IBV_SEND_INLINE), 0);
  std::memset(one_.memory().data(), 0, 8);
  EXPECT_EQ(one_.wait().status, IBV_WC_SUCCESS);
  const ibv_wc received = two_.wait();
  ASSERT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.byte_len, 8u);
  EXPECT_STREQ(reinterpret_cast<const char*>(two_.memory().data()), "inline!");
}

TEST_F(Behaviour, AWriteIsInPlaceBeforeALaterSendArrives) {
  join();
  for (int round = 0; round < 20; ++round) {
    fill(one_, large, round);
    ASSERT_EQ(two_.post_receive(1, 0), 0);
    ASSERT_EQ(one_.post_write(2, large, two_, two_.remote_key(), 0), 0);
    ASSERT_EQ(one_.post_write_with_immediate(3, 1, two_, 0), 0);
    ASSERT_EQ(two_.wait().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(same(large));
    const ibv_wc sent = one_.wait();
    EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
    EXPECT_EQ(sent.wr_id, 3u);  // the first write does not report its completion
  }
}

TEST_F(Behaviour, ASleeperIsWokenByACompletion) {
  join();
  ASSERT_EQ(ibv_req_notify_cq(two_.queue(), 0), 0);
  pollfd watched{two_.channel()->fd, POLLIN, 0};
  EXPECT_EQ(poll(&watched, 1, 0), 0);
  ASSERT_EQ(two_.post_receive(1, 64), 0);
  ASSERT_EQ(one_.post_send(2, 8), 0);
  ASSERT_EQ(poll(&watched, 1, 120'000), 1);
  ibv_cq* queue = nullptr;
  void* user = nullptr;
  ASSERT_EQ(functions().get_cq_event(two_.channel(), &queue, &user), 0);
  EXPECT_EQ(queue, two_.queue());
  functions().ack_cq_events(queue, 1);
  EXPECT_EQ(two_.wait().status, IBV_WC_SUCCESS);
  // Without a new request, there are no more events.
  ASSERT_EQ(two_.post_receive(1, 64), 0);
  ASSERT_EQ(one_.post_send(2, 8), 0);
  EXPECT_EQ(two_.wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(poll(&watched, 1, 0), 0);
}

TEST_F(Behaviour, AMessageWithoutAReceiveFailsOnTheSenderOnly) {
  join();
  ASSERT_EQ(one_.post_send(2, 8), 0);
  const ibv_wc sent = one_.wait();
  EXPECT_EQ(sent.status, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(sent.wr_id, 2u);
  EXPECT_EQ(sent.qp_num, one_.pair()->qp_num);
  ibv_wc completion{};
  EXPECT_FALSE(two_.poll(completion));
}

TEST_F(Behaviour, AMessageMayWaitForAReceiveWithoutEnd) {
  join();
  ASSERT_EQ(two_.post_send(2, 8), 0);
  ASSERT_EQ(one_.post_receive(3, 64), 0);
  EXPECT_EQ(two_.wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(one_.wait().status, IBV_WC_SUCCESS);
}

TEST_F(Behaviour, AWriteByAWrongKeyBreaksBothEnds) {
  join();
  ASSERT_EQ(two_.post_receive(9, 64), 0);
  ASSERT_EQ(one_.post_write(2, 8, two_, two_.remote_key() + 1), 0);
  EXPECT_EQ(one_.wait().status, IBV_WC_REM_ACCESS_ERR);
  const ibv_wc flushed = two_.wait();
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(flushed.wr_id, 9u);
}

// In these tests, `two_` permits `one_` to write into the bytes from 1000 to 1999 of the memory of `two_`.
class MemoryWindow : public Behaviour {
 protected:
  void SetUp() override {
    join();
    window_ = ibv_alloc_mw(two_.pair()->pd, IBV_MW_TYPE_2);
    ASSERT_NE(window_, nullptr);
    ASSERT_NO_FATAL_FAILURE(bind());
    fill(one_, 1000, 3);
  }
  void TearDown() override {
    // Soft-RoCE requires this order.
    EXPECT_EQ(ibv_dealloc_mw(window_), 0);
    two_.destroy_pair();
  }
  void bind() {
    key_ = ibv_inc_rkey(window_->rkey);
    ASSERT_EQ(two_.post_bind(1, window_, 1000, 1000, key_), 0);
    const ibv_wc bound = two_.wait();
    ASSERT_EQ(bound.status, IBV_WC_SUCCESS);
    EXPECT_EQ(bound.opcode, IBV_WC_BIND_MW);
    window_->rkey = key_;
  }
  void invalidate() {
    ASSERT_EQ(two_.post_invalidate(2, key_), 0);
    const ibv_wc ended = two_.wait();
    ASSERT_EQ(ended.status, IBV_WC_SUCCESS);
    EXPECT_EQ(ended.opcode, IBV_WC_LOCAL_INV);
  }
  ibv_wc_status write(std::size_t bytes, std::uint64_t offset, std::uint32_t key) {
    EXPECT_EQ(one_.post_write_at(3, bytes, two_, offset, key), 0);
    return one_.wait().status;
  }
  bool is_untouched() {
    return std::ranges::all_of(two_.memory(), [](std::byte each) { return each == std::byte{0}; });
  }

  ibv_mw* window_ = nullptr;
  std::uint32_t key_ = 0;
};

TEST_F(MemoryWindow, PermitsWritesIntoItsPart) {
  EXPECT_EQ(write(1000, 1000, key_), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(one_.memory().data(), two_.memory().data() + 1000, 1000), 0);
}

TEST_F(MemoryWindow, PermitsNoOtherWrites) {
  EXPECT_EQ(write(8, 3000, key_), IBV_WC_REM_ACCESS_ERR);
  EXPECT_TRUE(is_untouched());
}

TEST_F(MemoryWindow, PermitsNothingOnceItIsInvalidated) {
  ASSERT_NO_FATAL_FAILURE(invalidate());
  EXPECT_EQ(write(8, 1000, key_), IBV_WC_REM_ACCESS_ERR);
  EXPECT_TRUE(is_untouched());
}

TEST_F(MemoryWindow, HasANewKeyEachTimeItIsBound) {
  const std::uint32_t old = key_;
  ASSERT_NO_FATAL_FAILURE(invalidate());
  ASSERT_NO_FATAL_FAILURE(bind());
  EXPECT_NE(key_, old);
  EXPECT_EQ(write(8, 1000, key_), IBV_WC_SUCCESS);
  EXPECT_EQ(write(8, 1000, old), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindow, PermitsNothingToOtherQueuePairs) {
  End third(functions(), "rxe0"), fourth(functions(), "rxe1");
  End::join(third, fourth);
  ASSERT_EQ(third.post_write_at(3, 8, two_, 1000, key_), 0);
  EXPECT_EQ(third.wait().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_TRUE(is_untouched());
}

TEST_F(Behaviour, AMessageThatIsTooLongBreaksBothEnds) {
  join();
  ASSERT_EQ(two_.post_receive(9, 4), 0);
  ASSERT_EQ(one_.post_send(2, 8), 0);
  // Cards and Soft-RoCE differ in the status.
  EXPECT_NE(two_.wait().status, IBV_WC_SUCCESS);
  EXPECT_NE(one_.wait().status, IBV_WC_SUCCESS);
  ASSERT_EQ(one_.post_send(3, 8), 0);
  EXPECT_EQ(one_.wait().status, IBV_WC_WR_FLUSH_ERR);
}

// On a busy machine, a single retry may not be enough even if the peer is alive. So all other tests allow
// more retries.
TEST_F(Behaviour, AMessageToAPeerThatIsGoneFails) {
  End hasty(functions(), "rxe0", {.retries = 1, .timeout = 14});
  End::join(hasty, two_);
  two_.destroy_pair();
  ASSERT_EQ(hasty.post_send(2, 8), 0);
  EXPECT_EQ(hasty.wait().status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(Behaviour, ABrokenPairFlushesWhatItHasAndWhatComes) {
  join();
  ASSERT_EQ(two_.post_receive(1, 64), 0);
  ASSERT_EQ(two_.post_receive(2, 64), 0);
  ibv_qp_attr broken{};
  broken.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(two_.modify(broken, IBV_QP_STATE), 0);
  ASSERT_EQ(two_.post_send(3, 8), 0);
  bool seen[4] = {};
  for (int i = 0; i < 3; ++i) {
    const ibv_wc flushed = two_.wait();
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    ASSERT_LT(flushed.wr_id, 4u);
    seen[flushed.wr_id] = true;
  }
  EXPECT_TRUE(seen[1] && seen[2] && seen[3]);
}

TEST_F(Behaviour, APairCannotSkipAState) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(one_.modify(attributes, IBV_QP_STATE), EINVAL);
  attributes.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(one_.modify(attributes, IBV_QP_STATE), EINVAL);  // it lacks the peer's address
}

TEST_F(Behaviour, MemoryCannotBeRegisteredForRemoteWritesOnly) {
  errno = 0;
  EXPECT_EQ(functions().reg_mr(one_.pair()->pd, one_.memory().data(), 64, IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Behaviour, TheTableOfAddressesHasAnEnd) {
  ibv_gid_entry entry{};
  EXPECT_NE(functions().query_gid_ex(one_.context(), 1, 100'000, &entry, 0, sizeof entry), 0);
  EXPECT_NE(functions().query_gid_ex(one_.context(), 9, 0, &entry, 0, sizeof entry), 0);
}

TEST_F(Behaviour, ADomainInUseCannotBeFreed) {
  EXPECT_EQ(functions().dealloc_pd(one_.pair()->pd), EBUSY);
  EXPECT_EQ(functions().destroy_cq(one_.queue()), EBUSY);
}

}  // namespace
}  // namespace tutti::test
