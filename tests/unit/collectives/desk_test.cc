// Tests the control desk against ranks that send arbitrary notes. The test plays the other ranks.
#include "control/desk.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/group/group.h"
#include "collectives/group/world.h"
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

// The number of the blamed rank must be valid, since it is used as an index.
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

// A faulty rank can report failures of communicators that do not exist.
TEST(ControlDesk, FailuresOfUnknownCommunicatorsAreKeptUpToALimit) {
  MemberWorld world(3);
  constexpr std::uint32_t first = 100, last = 5000;
  for (std::uint32_t context = first; context <= last; ++context)
    world.desk.on_note({1, topic_failure, encode(FailureNote{context, Status(Code::aborted, "enough")})});
  { const DriverGuard guard(world.driver); }  // reads the notes
  const DriverGuard guard(world.driver);
  for (const std::uint32_t context : {first, last}) {
    Communicator communicator;
    world.mesh.attach(context, communicator);
    EXPECT_EQ(communicator.aborted.has_value(), context == last);
    world.mesh.detach(context);
  }
}

// Rank 2 is in the world, but not in the communicator.
TEST(ControlDesk, WhoIsNoMemberIsNotListenedTo) {
  MeshOptions options;
  options.peers.resize(3);
  for (int rank = 0; rank < 3; ++rank) options.peers[static_cast<std::size_t>(rank)].rank = rank;
  const auto engine = std::make_shared<Engine>(DriverOptions{.background = false});
  const auto world =
      std::make_shared<World>(engine, std::make_unique<Mesh>(engine->driver, std::move(options)),
                              Selector::create(CostModel{}, "").take(), std::chrono::seconds(60));
  std::vector<PaperPlane::Letter> letters;
  world->desk.start(std::make_unique<PaperPlane>(letters));
  Group group(world, MemberWorld::context, {0, 1});
  const CallNote where{MemberWorld::context, 1, {}};
  const Status why(Code::aborted, "enough");
  for (const int origin : {2, 1}) {
    world->desk.on_note({origin, topic_where, encode(where)});
    world->desk.on_note({origin, topic_failure, encode(FailureNote{MemberWorld::context, why})});
    { const DriverGuard guard(engine->driver); }  // reads the notes
    EXPECT_EQ(letters.empty(), origin == 2);
    EXPECT_EQ(group.status().ok(), origin == 2);
  }
}

}  // namespace
}  // namespace tutti::test
