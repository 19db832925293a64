// Tests what the provider (a libibverbs for tests) does beyond real devices. It produces failures that tests
// ask for, and keeps records.
#include "tests/verbs/provider/provider.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include "tests/verbs/end.h"

namespace tutti::provider {
namespace {

using test::End;

class ProviderTest : public testing::Test {
 protected:
  static const verbs::Functions& functions() { return Provider::functions(); }

  Provider provider_{{ethernet_device("fake0", "10.0.0.1"), ethernet_device("fake1", "10.0.0.2")}};
};

// `Ends` are two ends that are connected over two devices.
struct Ends {
  Ends() { End::join(one, two); }
  End one{Provider::functions(), "fake0"};
  End two{Provider::functions(), "fake1"};
};

ibv_async_event next_event(const End& end) {
  ibv_async_event event{};
  pollfd watched{end.context()->async_fd, POLLIN, 0};
  if (poll(&watched, 1, 0) == 1) Provider::functions().get_async_event(end.context(), &event);
  return event;
}

TEST_F(ProviderTest, CountsObjectsAndTraffic) {
  {
    const Ends ends;
    EXPECT_EQ(provider_.record().counts, (Counts{2, 2, 2, 2, 2, 2}));
    ASSERT_EQ(ends.two.post_receive(1, 64), 0);
    ASSERT_EQ(ends.one.post_send(2, 8, IBV_SEND_INLINE), 0);
    ASSERT_EQ(ends.one.post_write(3, 8, ends.two, ends.two.remote_key()), 0);
  }
  const Record record = provider_.record();
  EXPECT_EQ(record.counts, Counts{});
  EXPECT_EQ(record.traffic.sends, 2u);
  EXPECT_EQ(record.traffic.inlined, 1u);
  EXPECT_EQ(record.traffic.writes, 1u);
  EXPECT_EQ(record.traffic.receives, 1u);
  EXPECT_EQ(record.traffic.registrations, 2u);
  EXPECT_TRUE(record.mistakes.empty());
}

TEST_F(ProviderTest, FailsSendsWhenAsked) {
  const Ends ends;
  provider_.fail_sends(1, IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(ends.one.post_send(2, 8), 0);
  ASSERT_EQ(ends.one.post_send(3, 8), 0);
  const ibv_wc failed = ends.one.wait();
  EXPECT_EQ(failed.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(failed.wr_id, 2u);
  EXPECT_EQ(failed.qp_num, ends.one.pair()->qp_num);
  EXPECT_EQ(failed.byte_len, 0xa5a5a5a5u);  // undefined, so the provider fills in nonsense
  EXPECT_EQ(ends.one.wait().status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(ProviderTest, HoldsRequestsUntilTheyAreReleased) {
  const Ends ends;
  ASSERT_EQ(ends.two.post_receive(1, 64), 0);
  provider_.hold();
  ASSERT_EQ(ends.one.post_send(2, 8), 0);
  ibv_wc completion{};
  EXPECT_FALSE(ends.one.poll(completion));
  provider_.release();
  EXPECT_EQ(ends.one.wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(ends.two.wait().status, IBV_WC_SUCCESS);
}

// A held request ends without effect if its queue pair enters the error state.
TEST_F(ProviderTest, FlushesHeldRequests) {
  Ends ends;
  provider_.hold();
  ASSERT_EQ(ends.one.post_write(2, 8, ends.two, ends.two.remote_key()), 0);
  ends.one.memory()[0] = std::byte{1};
  provider_.break_pair(ends.one.pair()->qp_num);
  provider_.release();
  EXPECT_EQ(ends.one.wait().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(ends.two.memory()[0], std::byte{0});
  EXPECT_EQ(next_event(ends.one).event_type, IBV_EVENT_QP_FATAL);
}

// The kernel also drops these events, since they would name a queue pair that the program has freed.
TEST_F(ProviderTest, DropsEventsOfDestroyedPairs) {
  Ends ends;
  provider_.break_pair(ends.one.pair()->qp_num);
  ends.one.destroy_pair();
  provider_.set_port("fake0", 1, IBV_PORT_DOWN);
  EXPECT_EQ(next_event(ends.one).event_type, IBV_EVENT_PORT_ERR);
}

TEST_F(ProviderTest, BreaksAllPairsOfADevice) {
  const Ends ends;
  provider_.break_pairs("fake0");
  EXPECT_EQ(next_event(ends.one).element.qp, ends.one.pair());
  ASSERT_EQ(ends.two.post_send(2, 8), 0);
  EXPECT_EQ(ends.two.wait().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_THROW(provider_.break_pairs("fake2"), std::invalid_argument);
}

TEST_F(ProviderTest, TakesPortsDown) {
  const Ends ends;
  provider_.set_port("fake1", 1, IBV_PORT_DOWN);
  const ibv_async_event event = next_event(ends.two);
  EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(event.element.port_num, 1);
  ASSERT_EQ(ends.one.post_send(2, 8), 0);
  EXPECT_EQ(ends.one.wait().status, IBV_WC_RETRY_EXC_ERR);
  ibv_port_attr port{};
  functions().query_port(ends.two.context(), 1, reinterpret_cast<_compat_ibv_port_attr*>(&port));
  EXPECT_EQ(port.state, IBV_PORT_DOWN);
}

TEST_F(ProviderTest, TakesDevicesAway) {
  const Ends ends;
  provider_.remove("fake0");
  EXPECT_EQ(next_event(ends.one).event_type, IBV_EVENT_DEVICE_FATAL);
  int count = 0;
  functions().free_device_list(functions().get_device_list(&count));
  EXPECT_EQ(count, 1);
  ASSERT_EQ(ends.two.post_send(2, 8), 0);
  EXPECT_EQ(ends.two.wait().status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(ProviderTest, CutsTheWayBetweenTwoAddresses) {
  const Ends ends;
  provider_.cut(make_gid("::ffff:10.0.0.2"), make_gid("::ffff:10.0.0.1"));
  ASSERT_EQ(ends.one.post_send(2, 8), 0);
  EXPECT_EQ(ends.one.wait().status, IBV_WC_RETRY_EXC_ERR);
}

// A request that is not signalled occupies the queue until the completion of a later request is polled.
TEST_F(ProviderTest, LimitsTheRequestsInAQueue) {
  End::Options two_requests;
  two_requests.room = 2;
  End one(functions(), "fake0", two_requests);
  End two(functions(), "fake1");
  End::join(one, two);
  ASSERT_EQ(one.post_write(1, 8, two, two.remote_key(), 0), 0);
  ASSERT_EQ(one.post_write(2, 8, two, two.remote_key()), 0);
  EXPECT_EQ(one.post_write(3, 8, two, two.remote_key()), ENOMEM);
  EXPECT_EQ(one.wait().wr_id, 2u);
  EXPECT_EQ(one.post_write(4, 8, two, two.remote_key()), 0);
  EXPECT_EQ(one.post_write(5, 8, two, two.remote_key()), 0);
  EXPECT_EQ(one.post_receive(6, 8), 0);
  EXPECT_EQ(one.post_receive(7, 8), 0);
  EXPECT_EQ(one.post_receive(8, 8), ENOMEM);
}

TEST_F(ProviderTest, RecordsEventsThatWereNotAcknowledged) {
  {
    const Ends ends;
    ASSERT_EQ(ibv_req_notify_cq(ends.two.queue(), 0), 0);
    ASSERT_EQ(ends.two.post_receive(1, 64), 0);
    ASSERT_EQ(ends.one.post_send(2, 8), 0);
    ibv_cq* queue = nullptr;
    void* user = nullptr;
    ASSERT_EQ(functions().get_cq_event(ends.two.channel(), &queue, &user), 0);
  }
  EXPECT_EQ(provider_.record().mistakes.size(), 1u);
}

TEST(ProviderSettings, LimitRegisteredMemory) {
  DeviceSettings small = ethernet_device("fake0", "10.0.0.1");
  small.memlock = (1 << 20) + 64;  // an `End` registers a mebibyte
  const Provider provider({small});
  const End end(Provider::functions(), "fake0");
  std::vector<std::byte> memory(65);
  errno = 0;
  EXPECT_EQ(Provider::functions().reg_mr(end.pair()->pd, memory.data(), 65, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  ibv_mr* const region =
      Provider::functions().reg_mr(end.pair()->pd, memory.data(), 64, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(region, nullptr);
  Provider::functions().dereg_mr(region);
}

TEST(ProviderSettings, MakeAddressesUnreadable) {
  DeviceSettings container = ethernet_device("fake0", "10.0.0.1");
  container.ports[0].gids[0] = unreadable_gid(ENODATA);
  const Provider provider({container});
  const End end(Provider::functions(), "fake0");
  ibv_gid_entry entry{};
  EXPECT_EQ(Provider::functions().query_gid_ex(end.context(), 1, 0, &entry, 0, sizeof entry), ENODATA);
  EXPECT_EQ(end.gid().gid_index, 1u);
}

TEST(ProviderSettings, ThereIsOneProviderAtATime) {
  const Provider provider({});
  EXPECT_THROW(Provider({}), std::logic_error);
  EXPECT_THROW(make_gid("10.0.0.1"), std::invalid_argument);
}

}  // namespace
}  // namespace tutti::provider
