// A hostile peer writes with the key of an operation that is over. These tests also run over Soft-RoCE.
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/channel_world.h"
#include "tests/verbs/tapped_library.h"
#include "transport/verbs/factory.h"

namespace tutti::verbs {
namespace {

using conformance::collective;
using conformance::Node;
using conformance::Recv;
using conformance::Send;
using conformance::World;

// `Spy` is the library under test. It also remembers the last remote write, so that it can write once more
// with the same key.
class Spy {
 public:
  Spy() : library_([this](ibv_qp& pair, const ibv_send_wr& request) { watch(pair, request); }) {}

  const Functions& functions() { return library_.functions(); }
  bool has_seen_a_write() {
    const std::lock_guard lock(mutex_);
    return pair_ != nullptr;
  }
  // Writes some bytes to where the last write went, with the same key.
  void write_again() {
    std::vector<std::byte> bytes(64, std::byte{0xbb});
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), static_cast<std::uint32_t>(bytes.size()),
                  0};
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_INLINE;
    request.sg_list = &piece;
    request.num_sge = 1;
    const std::lock_guard lock(mutex_);
    request.wr.rdma.remote_addr = address_;
    request.wr.rdma.rkey = key_;
    ibv_send_wr* failed = nullptr;
    ASSERT_EQ(library_.post(pair_, &request, &failed), 0);
  }

 private:
  void watch(ibv_qp& pair, const ibv_send_wr& request) {
    if (request.opcode != IBV_WR_RDMA_WRITE && request.opcode != IBV_WR_RDMA_WRITE_WITH_IMM) return;
    const std::lock_guard lock(mutex_);
    pair_ = &pair;
    address_ = request.wr.rdma.remote_addr;
    key_ = request.wr.rdma.rkey;
  }

  test::TappedLibrary library_;
  std::mutex mutex_;  // guards everything below
  ibv_qp* pair_ = nullptr;
  std::uint64_t address_ = 0;
  std::uint32_t key_ = 0;
};

// Rank 0 uses the device rxe0, and rank 1 the device rxe1.
class SpiedCards final : public conformance::TransportFixture {
 public:
  std::string name() const override { return "verbs"; }
  std::unique_ptr<tutti::Transport> create(int rank, bool, const MessageLimits& limits) override {
    Options options;
    options.functions = &spy->functions();
    options.settings.devices = "=rxe" + std::to_string(rank);
    options.limits = limits;
    return verbs::create(options).take();
  }
  static inline Spy* spy = nullptr;
};

std::unique_ptr<conformance::TransportFixture> make_spied_cards() { return std::make_unique<SpiedCards>(); }

TEST(VerbsAttack, AnOldKeyWritesNothing) {
  constexpr std::size_t bytes = 256 * 1024;
  Spy spy;
  SpiedCards::spy = &spy;
  World world(&make_spied_cards, 2);
  Node &from = world[0], &to = world[1];
  Send send(bytes, collective(1), 1);
  Recv recv(bytes, 0, collective(1));
  const auto received = to.mesh.add_memory(recv.memory).take();
  to.post(recv);
  from.post(1, send);
  ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
  ASSERT_EQ(to.counters().bytes_in_place, bytes);
  ASSERT_TRUE(spy.has_seen_a_write());
  std::ranges::fill(recv.memory, std::byte{0xee});
  const std::vector<std::byte> then = recv.memory;
  Recv at_0(8, 1, collective(2)), at_1(8, 0, collective(2));
  from.post(at_0);
  to.post(at_1);
  ASSERT_NO_FATAL_FAILURE(spy.write_again());
  const bool refused = from.until([&] { return at_0.over.load() != 0; });
  EXPECT_TRUE(refused) << "the write was not refused";
  if (!refused) {
    from.drive([&] { from.mesh.cancel(at_0, conformance::gave_up); });
    to.drive([&] { to.mesh.cancel(at_1, conformance::gave_up); });
  }
  EXPECT_NE(at_0.wait().message().find("remote access error"), std::string::npos) << at_0.status.to_string();
  EXPECT_FALSE(at_1.wait().ok());
  EXPECT_TRUE(recv.memory == then);
}

}  // namespace
}  // namespace tutti::verbs
