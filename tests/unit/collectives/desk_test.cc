// Tests the control desk against members that write notes as they like. The test plays the other ranks.
#include "control/desk.h"

#include <optional>

#include <gtest/gtest.h>

#include "control/notes.h"
#include "tests/unit/collectives/member_world.h"

namespace tutti::test {
namespace {

struct Communicator final : ContextEvents {
  std::optional<Status> aborted;
  Known operation(std::uint64_t) const override { return {}; }
  void on_mismatch(int, std::uint64_t, const Fingerprint*, const Status&) override {}
  void on_abort(int, const Status& why) override { aborted = why; }
  void on_peer_down(int, const Status&) override {}
};

// Callers use the rank that a failure blames as an index.
TEST(ControlDesk, AFailureBlamesNoRankThatDoesNotExist) {
  MemberWorld world(3);
  Communicator communicator;
  {
    const DriverGuard guard(world.driver);
    world.mesh.attach(MemberWorld::context, communicator);
  }
  for (const int peer : {2, 3, 1 << 30}) {
    communicator.aborted.reset();
    const Status why(Code::aborted, "enough", peer);
    world.desk.on_note({1, topic_failure, encode(FailureNote{MemberWorld::context, why})});
    { const DriverGuard guard(world.driver); }  // reads the note
    ASSERT_TRUE(communicator.aborted) << peer;
    EXPECT_EQ(communicator.aborted->peer(), peer == 2 ? 2 : -1);
    EXPECT_EQ(communicator.aborted->message(), "enough");
  }
  const DriverGuard guard(world.driver);
  world.mesh.detach(MemberWorld::context);
}

}  // namespace
}  // namespace tutti::test
