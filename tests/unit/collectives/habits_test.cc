#include "collectives/group/habits.h"

#include <array>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/schedule/algorithm.h"
#include "tests/unit/collectives/board_world.h"
#include "tests/unit/collectives/member_world.h"

namespace tutti {
namespace {

using test::MemberWorld;

constexpr std::uint64_t window_bytes = 4096;
using Pair = std::array<std::int32_t, 2>;

struct BoardMemory {
  struct alignas(4096) Page {
    std::byte bytes[4096];
  };
  std::span<std::byte> all() { return std::as_writable_bytes(std::span(pages)); }
  std::vector<Page> pages = std::vector<Page>(Board::segment_bytes(2, window_bytes) / sizeof(Page) + 1);
  std::vector<int> rings = std::vector<int>(2);
};

// `Regular` is one of two ranks that share memory. Rank 0 broadcasts.
struct Regular : MemberWorld {
  Regular(BoardMemory& memory, int rank) : MemberWorld(2, rank, false) {
    auto segment = std::make_unique<test::PlainSegment>(
        memory.all().first(Board::segment_bytes(2, window_bytes)), memory.rings);
    auto board = std::make_unique<Board>(std::move(segment), rank, 2, window_bytes);
    shared.open(
        std::make_unique<SharedExecutor>(std::move(board), mesh, members.world_ranks(), allocations, false),
        window_bytes);
  }
  ~Regular() override { shared.close(); }

  static Problem problem_of(int rank, std::uint64_t count) {
    Problem problem;
    problem.kind = CollectiveKind::broadcast;
    problem.rank = rank;
    problem.size = 2;
    problem.count = count;
    problem.element_size = sizeof(std::int32_t);
    problem.window_bytes = window_bytes;
    return problem;
  }
  Call call(Pair& elements) const {
    return {.kind = CollectiveKind::broadcast, .in = elements, .out = elements};
  }
  // Puts this rank into the state that follows a broadcast of two elements.
  void form() {
    const Problem problem = problem_of(members.rank(), 2);
    const Algorithm* const algorithm = find_algorithm(CollectiveKind::broadcast, "shared");
    ASSERT_NE(algorithm, nullptr);
    Operation& operation = *live.make(*this, Operation::Kind::collective, {}, {});
    operation.shared_schedule = std::make_shared<CachedSchedule>(build_schedule(*algorithm, problem, {}),
                                                                 algorithm->id, problem.element_size);
    habits.form(operation, problem);
    operation.release();
  }
  bool attempt(Pair& elements, Work& work, std::uint64_t count = 2) {
    const Fingerprint print{.kind = CollectiveKind::broadcast, .type = DataType::int32, .count = count};
    return habits.attempt(call(elements), problem_of(members.rank(), count), print, {}, work);
  }
  bool repeat(Pair& elements, Work& work) { return habits.repeat(call(elements), {}, work); }
  void advance() {
    const DriverGuard guard(driver);
    shared.executor()->advance();
  }

  AllocationTable allocations;
  Pair elements{};
  Habits habits{parts, *this};
};

struct HabitsOfTwo : testing::Test {
  void SetUp() override {
    root.form();
    leaf.form();
  }
  // Carries out a first broadcast. The leaf (rank 1) makes its call before the root (rank 0).
  void broadcast_once() {
    Work sent, received;
    root.elements = {1, 2};
    ASSERT_TRUE(leaf.attempt(leaf.elements, received));
    EXPECT_FALSE(received.done());
    ASSERT_TRUE(root.attempt(root.elements, sent));
    leaf.advance();
    EXPECT_TRUE(sent.done());
    EXPECT_TRUE(received.done());
    EXPECT_TRUE(received.status().ok());
    EXPECT_EQ(leaf.elements, root.elements);
  }
  BoardMemory memory;
  Regular root{memory, 0};
  Regular leaf{memory, 1};
};

TEST(Habits, KnowNothingAtFirst) {
  BoardMemory memory;
  Regular rank(memory, 0);
  Work work;
  EXPECT_FALSE(rank.repeat(rank.elements, work));
  EXPECT_FALSE(rank.attempt(rank.elements, work));
  EXPECT_EQ(rank.journal.next_collective(), 0u);
}

TEST_F(HabitsOfTwo, ACollectiveThatIsNotOverAtOnceIsAnOperationLikeAnyOther) {
  Work received;
  ASSERT_TRUE(leaf.attempt(leaf.elements, received));
  ASSERT_FALSE(leaf.live.empty());
  EXPECT_EQ(leaf.live.newest()->name(), "broadcast(count=2, int32, root=0) #0");
  EXPECT_FALSE(leaf.attempt(leaf.elements, received));  // only one operation at a time
  leaf.gate.abort(Status(Code::aborted, "enough"));
  EXPECT_EQ(received.status().code(), Code::aborted);
  EXPECT_TRUE(leaf.live.empty());
}

TEST_F(HabitsOfTwo, TheSameCallIsRepeatedInPassing) {
  broadcast_once();
  Work sent, received;
  ASSERT_TRUE(root.attempt(root.elements, sent));
  ASSERT_TRUE(leaf.attempt(leaf.elements, received));
  for (std::int32_t round = 0; round < 10; ++round) {
    root.elements = {round, -round};
    ASSERT_TRUE(root.repeat(root.elements, sent));
    ASSERT_TRUE(leaf.repeat(leaf.elements, received));
    EXPECT_TRUE(sent.done());
    EXPECT_TRUE(received.done());
    EXPECT_EQ(leaf.elements, root.elements);
  }
  EXPECT_EQ(root.journal.next_collective(), 12u);
  EXPECT_EQ(root.journal.find(11).finished, true);
}

TEST_F(HabitsOfTwo, TheSameCallIsRepeatedAfterOneThatWasNotOverAtOnce) {
  broadcast_once();  // the leaf has waited for the root
  root.elements = {5, 6};
  Work sent, received;
  ASSERT_TRUE(leaf.repeat(leaf.elements, received));
  EXPECT_FALSE(received.done());
  ASSERT_TRUE(root.attempt(root.elements, sent));
  leaf.advance();
  EXPECT_TRUE(received.done());
  EXPECT_TRUE(received.status().ok());
  EXPECT_EQ(leaf.elements, root.elements);
  EXPECT_EQ(leaf.journal.next_collective(), 2u);
}

TEST_F(HabitsOfTwo, OtherBuffersAreNoRepetitionButTheSameProblem) {
  broadcast_once();
  Pair others = {3, 4};
  Work work;
  EXPECT_FALSE(root.repeat(others, work));
  EXPECT_TRUE(root.attempt(others, work));
  EXPECT_TRUE(root.repeat(others, work));
  EXPECT_FALSE(root.repeat(root.elements, work));
}

TEST_F(HabitsOfTwo, OtherMemoryAtTheSameAddressOrAStreamIsNoRepetition) {
  broadcast_once();
  Work work;
  ASSERT_TRUE(root.attempt(root.elements, work));
  Call call = root.call(root.elements);
  EXPECT_FALSE(root.habits.repeat(call, {.stream = &call}, work));
  EXPECT_FALSE(root.habits.repeat(call, {.region = &call}, work));
  call.in.memory = call.out.memory = Memory::cuda(0);
  EXPECT_FALSE(root.habits.repeat(call, {}, work));
  EXPECT_EQ(root.journal.next_collective(), 2u);
}

TEST_F(HabitsOfTwo, OtherCountsOrANamedAlgorithmAreNoHabit) {
  broadcast_once();
  Work work;
  EXPECT_FALSE(root.attempt(root.elements, work, 1));
  ASSERT_TRUE(root.attempt(root.elements, work));
  EXPECT_FALSE(root.habits.repeat(root.call(root.elements), {.algorithm = "shared"}, work));
  EXPECT_EQ(root.journal.next_collective(), 2u);
}

TEST_F(HabitsOfTwo, NothingIsCarriedOutInPassingAfterAFailure) {
  broadcast_once();
  Work work;
  ASSERT_TRUE(root.attempt(root.elements, work));
  root.failure.note(Status(Code::peer_lost, "rank 1 died", 1));
  EXPECT_FALSE(root.repeat(root.elements, work));
}

}  // namespace
}  // namespace tutti
