// Lets ranks make random calls on device memory while random things go wrong, and checks that every call
// ends, that the ranks blame the same rank, and that nothing is left.

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/nccl_world.h"
#include "tests/support/collective_case.h"
#include "tests/support/mirrored_offload.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using Random = std::mt19937;

int below(Random& random, int end) { return std::uniform_int_distribution(0, end - 1)(random); }

// What goes wrong in a world.
enum class Trouble { none, abort, leave, device, refusal, failure, hang, driver, slow_abort };
constexpr int troubles = 9;
constexpr int calls = 30;
constexpr int most_elements = 240;

struct World {
  int size = 2;
  bool nccl = true;
  Trouble trouble = Trouble::none;
  int culprit = 0;
  int after = 0;  // calls
};

// `Rank` makes the calls of one rank. All of it is destroyed in a random order.
class Rank {
 public:
  Rank(Communicator& comm, const World& world, unsigned seed)
      : comm_(comm), world_(world), shared_(seed), own_(seed * 31 + static_cast<unsigned>(comm.rank())) {
    for (int i = 0; i < 2; ++i) streams_.push_back(std::make_unique<DeviceStream>(comm.rank()));
    const std::vector<float> ones(most_elements, 1);
    for (int i = 0; i < calls; ++i) memory_.push_back(std::make_unique<DeviceArray<float>>(rank_, ones));
  }

  void run() {
    for (int i = 0; i < calls && comm_.status().ok(); ++i) {
      if (i == world_.after && comm_.rank() == world_.culprit) strike();
      if (left_) return;
      call(i);
      look_back();
    }
    if (comm_.status().ok()) return;
    for (Communicator& part : parts_) part.abort("another communicator has failed");
  }
  bool left() const { return left_; }
  // Waits for all calls.
  Status end() {
    for (const Work& work : works_) await(work);
    static_cast<void>(outcome(comm_.barrier()));
    return comm_.status();
  }
  // Destroys what the rank has, in a random order.
  void destroy() {
    std::vector<int> order = {0, 1, 2, 3};
    std::shuffle(order.begin(), order.end(), own_);
    for (const int each : order) {
      if (each == 0) parts_.clear();
      if (each == 1 && below(own_, 2) == 0) comm_ = Communicator();
      if (each == 2 && below(own_, 2) == 0) streams_.clear();  // waits for the streams
      if (each == 3 && below(own_, 2) == 0) works_.clear();
    }
    // Memory must live until the calls have ended, which they have when the communicators are destroyed.
    comm_ = Communicator();
    streams_.clear();
    memory_.clear();
  }

 private:
  void await(const Work& work) const {
    const Status status = outcome(work);
    const bool may_time_out = world_.trouble == Trouble::hang || world_.trouble == Trouble::failure;
    EXPECT_TRUE(may_time_out || status.code() != Code::timeout) << status.to_string();
  }
  void strike() {
    switch (world_.trouble) {
      case Trouble::abort:
        comm_.abort("enough");
        break;
      case Trouble::leave:
        left_ = true;
        parts_.clear();
        comm_ = Communicator();
        break;
      case Trouble::device:
        fake_cuda_break(700);
        break;
      case Trouble::driver:
        fake_cuda_fail(below(own_, 2) == 0 ? "cuEventRecord" : "cuEventQuery", 1 + below(own_, 30), 700);
        break;
      default:
        break;
    }
  }
  void call(int number) {
    Communicator& on = choose();
    const int kind = below(shared_, 5);
    const auto count = static_cast<std::size_t>(comm_.size() * (1 + below(shared_, most_elements / 4)));
    Buffer buffer = memory_[static_cast<std::size_t>(number)]->buffer();
    buffer.count = count;
    const int stream = below(own_, 3);
    CallOptions options;
    if (stream < 2 && !streams_.empty())
      options.stream = streams_[static_cast<std::size_t>(stream)]->handle();
    if (world_.trouble == Trouble::hang || world_.trouble == Trouble::failure)
      options.timeout = milliseconds(1500);
    switch (kind) {
      case 0:
        works_.push_back(on.all_reduce(buffer, ReduceOp::premultiplied_sum(2), options));
        break;
      case 1:
        works_.push_back(on.broadcast(buffer, 0, options));
        break;
      case 2:
        works_.push_back(count % static_cast<std::size_t>(on.size()) == 0
                             ? on.all_to_all(buffer, buffer, options)
                             : on.all_reduce(buffer, ReduceOp::max, options));
        break;
      default:
        works_.push_back(on.all_reduce(buffer, ReduceOp::sum, options));
    }
    if (below(own_, 3) == 0) {
      try {
        works_.back().wait_on(streams_[static_cast<std::size_t>(below(own_, 2))]->handle());
      } catch (const Error&) {
      }
    }
    if (below(own_, 4) == 0) await(works_.back());
  }
  void look_back() {
    if (below(shared_, 12) != 0 || parts_.size() > 2) return;
    try {
      parts_.push_back(std::move(*comm_.split(0)));
    } catch (const Error&) {
    }
  }
  Communicator& choose() {
    const auto which = static_cast<std::size_t>(below(shared_, 4));
    return which < parts_.size() ? parts_[which] : comm_;
  }

  Communicator& comm_;
  const int rank_ = comm_.rank();
  const World& world_;
  Random shared_;  // equal on all ranks
  Random own_;
  bool left_ = false;
  std::vector<std::unique_ptr<DeviceStream>> streams_;
  std::vector<std::unique_ptr<DeviceArray<float>>> memory_;
  std::vector<Communicator> parts_;
  std::vector<Work> works_;
};

class Chaos : public NcclWorld {};

void go_wrong(const World& world) {
  FakeNccl& nccl = fake_nccl();
  FakeNcclFault* const fault = world.trouble == Trouble::refusal   ? &nccl.refusal
                               : world.trouble == Trouble::failure ? &nccl.failure
                               : world.trouble == Trouble::hang    ? &nccl.hang
                                                                   : nullptr;
  if (fault == nullptr) return;
  fault->call = world.after;
  fault->rank = world.culprit;
}

TEST_F(Chaos, EveryCallEnds) {
  const char* const first_seed = std::getenv("CHAOS_SEED");
  const char* const rounds = std::getenv("CHAOS_ROUNDS");
  const unsigned begin = first_seed == nullptr ? 1 : static_cast<unsigned>(std::atoi(first_seed));
  const unsigned count = rounds == nullptr ? 40 : static_cast<unsigned>(std::atoi(rounds));
  for (unsigned seed = begin; seed < begin + count; ++seed) {
    Random random(seed);
    World world;
    world.size = 1 + below(random, 4);
    world.nccl = below(random, 2) == 0;
    world.trouble = static_cast<Trouble>(below(random, troubles));
    world.culprit = below(random, world.size);
    world.after = below(random, calls);
    const std::string name = "seed " + std::to_string(seed) + " size " + std::to_string(world.size) +
                             " nccl " + std::to_string(world.nccl) + " trouble " +
                             std::to_string(static_cast<int>(world.trouble)) + " culprit " +
                             std::to_string(world.culprit) + " after " + std::to_string(world.after);
    std::printf("%s\n", name.c_str());
    std::fflush(stdout);
    fake_cuda_reset(16);
    fake_nccl_reset();
    fake_nccl().launch_queries = below(random, 3);
    if (below(random, 3) == 0) fake_cuda_slow_copies(static_cast<unsigned>(below(random, 300)));
    go_wrong(world);
    ClusterOptions with = options(std::chrono::seconds(60));
    if (!world.nccl) with.offloads = staged_offloads(64);
    with.control = world.size > 1;  // otherwise ranks without a connection do not hear of an abort
    std::vector<std::optional<Status>> ends(static_cast<std::size_t>(world.size));
    std::barrier together(world.size);
    const bool waits = below(random, 2) == 0;
    {
      Cluster ranks(world.size, with);
      ranks.run([&](Communicator& comm) {
        const auto index = static_cast<std::size_t>(comm.rank());
        Rank rank(comm, world, seed);
        together.arrive_and_wait();
        rank.run();
        if (!rank.left() && waits) ends[index] = rank.end();
        if (waits) together.arrive_and_wait();
        rank.destroy();
        together.arrive_and_wait();
      });
    }
    const Status* first = nullptr;
    for (const std::optional<Status>& end : ends) {
      if (!end) continue;
      if (first == nullptr) first = &*end;
      const bool may_time_out = world.trouble == Trouble::hang || world.trouble == Trouble::failure;
      // All devices break at the same time, and ranks can lose the one that leaves in different ways.
      const bool may_differ =
          may_time_out || world.trouble == Trouble::device || world.trouble == Trouble::leave;
      EXPECT_TRUE(may_differ || end->to_string() == first->to_string())
          << name << ": " << end->to_string() << " is not " << first->to_string();
      EXPECT_EQ(end->ok(), first->ok());
      EXPECT_TRUE(may_time_out || end->code() != Code::timeout) << name << end->to_string();
    }
    const FakeCudaCounts counts = fake_cuda_counts();
    EXPECT_EQ(counts.streams + counts.events, 0) << name;
    EXPECT_EQ(fake_nccl().communicators, 0) << name;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tutti::test
