// Lets ranks make random calls on device memory while random failures happen. Checks that every
// call ends, that the ranks report the same cause, and that no resources are left. TEST_SEED sets
// the first seed.

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/nccl_world.h"
#include "tests/support/collective_case.h"
#include "tests/support/mirrored_offload.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using Random = std::mt19937;

constexpr int calls = 30;
constexpr int most_elements = 240;

int below(Random& random, int end) { return std::uniform_int_distribution(0, end - 1)(random); }
bool one_in(Random& random, int times) { return below(random, times) == 0; }

// A `Trouble` is the one thing that goes wrong in a scene: the culprit aborts or leaves; all devices break;
// NCCL refuses a call of the culprit, or fails or hangs in it; or one call of the CUDA driver fails.
enum class Trouble { none, abort, leave, device, refusal, failure, hang, driver };
constexpr int troubles = 8;

// A `Scene` is a world and the trouble that happens in it.
struct Scene {
  explicit Scene(unsigned number) : seed(number), random(number) {}

  // These troubles make a call of NCCL hang, so that calls of tutti end by their time limits. Each rank then
  // reports its own timeout.
  bool may_time_out() const { return trouble == Trouble::hang || trouble == Trouble::failure; }
  // There may be several causes in two further cases: all devices break at the same time, or the
  // ranks lose a leaving rank in different ways.
  bool has_one_cause() const {
    return !may_time_out() && trouble != Trouble::device && trouble != Trouble::leave;
  }
  std::string describe() const {
    return "seed " + std::to_string(seed) + ": " + std::to_string(size) + " ranks, " +
           (nccl ? "nccl" : "staged") + ", trouble " + std::to_string(static_cast<int>(trouble)) +
           " on rank " + std::to_string(culprit) + " in call " + std::to_string(after);
  }

  const unsigned seed;
  Random random;
  const int size = 1 + below(random, 4);
  const bool nccl = one_in(random, 2);
  const Trouble trouble = static_cast<Trouble>(below(random, troubles));
  const int culprit = below(random, size);
  const int after = below(random, calls);
  // If this is true, the ranks wait for all calls before they destroy anything.
  const bool waits = one_in(random, 2);
};

// A `Caller` makes the calls of one rank.
class Caller {
 public:
  Caller(Communicator& comm, const Scene& scene)
      : comm_(comm),
        rank_(comm.rank()),
        scene_(scene),
        shared_(scene.seed),
        own_(scene.seed * 31 + static_cast<unsigned>(rank_)) {
    for (int i = 0; i < 2; ++i) streams_.push_back(std::make_unique<DeviceStream>(rank_));
    const std::vector<float> ones(most_elements, 1);
    for (int i = 0; i < calls; ++i) memory_.push_back(std::make_unique<DeviceArray<float>>(rank_, ones));
  }

  void run() {
    for (int i = 0; i < calls && comm_.status().ok(); ++i) {
      if (i == scene_.after && rank_ == scene_.culprit) strike();
      if (left_) return;
      call(memory_[static_cast<std::size_t>(i)]->buffer());
      if (one_in(shared_, 12) && parts_.size() < 3) split();
    }
    if (comm_.status().ok()) return;
    for (Communicator& part : parts_) part.abort("another communicator has failed");
  }

  // Waits for all calls. Returns the final status of the communicator. Returns no status if this
  // rank has left.
  std::optional<Status> end() {
    if (left_) return {};
    for (const Work& work : works_) await(work);
    static_cast<void>(outcome(comm_.barrier()));
    return comm_.status();
  }

  // Destroys all objects in a random order, except that the memory must live until the calls have ended.
  void destroy() {
    std::vector<int> order = {0, 1, 2, 3};
    std::ranges::shuffle(order, own_);
    for (const int each : order) {
      if (each == 0) parts_.clear();
      if (each == 1) comm_ = Communicator();
      if (each == 2) streams_.clear();
      if (each == 3) works_.clear();
    }
    memory_.clear();
  }

 private:
  void strike() {
    switch (scene_.trouble) {
      case Trouble::abort:
        return comm_.abort("enough");
      case Trouble::leave:
        left_ = true;
        parts_.clear();
        comm_ = Communicator();
        return;
      case Trouble::device:
        return fake_cuda_break(illegal_address);
      case Trouble::driver: {
        const char* const function = one_in(own_, 2) ? "cuEventRecord" : "cuEventQuery";
        return fake_cuda_fail(function, 1 + below(own_, 30), illegal_address);
      }
      default:
        return;
    }
  }

  // All ranks choose the same communicator, kind and count, but each uses its own streams.
  void call(Buffer buffer) {
    const auto which = static_cast<std::size_t>(below(shared_, 4));
    Communicator& on = which < parts_.size() ? parts_[which] : comm_;
    int kind = below(shared_, 5);
    // A broken device never frees the memory into which an all_to_all has copied its input, so this
    // case is left out.
    if (scene_.trouble == Trouble::device && kind == 2) kind = 3;
    buffer.count = static_cast<std::uint64_t>(scene_.size * (1 + below(shared_, most_elements / 4)));
    CallOptions options;
    if (!one_in(own_, 3)) options.stream = any_stream();
    if (scene_.may_time_out()) options.timeout = milliseconds(1500);
    works_.push_back(kind == 0   ? on.all_reduce(buffer, ReduceOp::premultiplied_sum(2), options)
                     : kind == 1 ? on.broadcast(buffer, 0, options)
                     : kind == 2 ? on.all_to_all(buffer, buffer, options)
                                 : on.all_reduce(buffer, ReduceOp::sum, options));
    try {
      if (one_in(own_, 3)) works_.back().wait_on(any_stream());
    } catch (const Error&) {  // the call has already failed
    }
    if (one_in(own_, 4)) await(works_.back());
  }
  void* any_stream() { return streams_[static_cast<std::size_t>(below(own_, 2))]->handle(); }
  void split() {
    try {
      parts_.push_back(std::move(*comm_.split(0)));
    } catch (const Error&) {  // the communicator has failed
    }
  }
  void await(const Work& work) const {
    const Status status = outcome(work);
    EXPECT_TRUE(scene_.may_time_out() || status.code() != Code::timeout) << status.to_string();
  }

  Communicator& comm_;
  const int rank_;
  const Scene& scene_;
  Random shared_;  // equal on all ranks
  Random own_;
  bool left_ = false;
  std::vector<std::unique_ptr<DeviceStream>> streams_;
  std::vector<std::unique_ptr<DeviceArray<float>>> memory_;
  std::vector<Communicator> parts_;
  std::vector<Work> works_;
};

class DeviceChaos : public NcclWorld {
 protected:
  static void prepare(Scene& scene) {
    fake_cuda_reset(16);
    fake_nccl_reset();
    FakeNccl& nccl = fake_nccl();
    nccl.launch_queries = below(scene.random, 3);
    if (one_in(scene.random, 3)) fake_cuda_slow_copies(static_cast<unsigned>(below(scene.random, 300)));
    FakeNcclFault* const fault = scene.trouble == Trouble::refusal   ? &nccl.refusal
                                 : scene.trouble == Trouble::failure ? &nccl.failure
                                 : scene.trouble == Trouble::hang    ? &nccl.hang
                                                                     : nullptr;
    if (fault == nullptr) return;
    fault->call = scene.after;
    fault->rank = scene.culprit;
  }

  // Returns the final status of each rank's communicator. There is no status if the rank has left
  // or has not waited.
  static std::vector<std::optional<Status>> play(const Scene& scene) {
    ClusterOptions world = options(std::chrono::seconds(60));
    if (!scene.nccl) world.offloads = staged_offloads(64);
    // The control plane tells all ranks of an abort, even ranks without a connection.
    world.control = scene.size > 1;
    std::vector<std::optional<Status>> ends(static_cast<std::size_t>(scene.size));
    std::barrier together(scene.size);
    Cluster ranks(scene.size, world);
    ranks.run([&](Communicator& comm) {
      const auto index = static_cast<std::size_t>(comm.rank());
      Caller caller(comm, scene);
      together.arrive_and_wait();
      caller.run();
      if (scene.waits) {
        ends[index] = caller.end();
        together.arrive_and_wait();
      }
      caller.destroy();
      together.arrive_and_wait();
    });
    return ends;
  }
};

TEST_F(DeviceChaos, EveryCallEnds) {
  const char* const first = std::getenv("TEST_SEED");
  const unsigned begin = first == nullptr ? 1 : static_cast<unsigned>(std::stoul(first));
  for (unsigned seed = begin; seed < begin + (test_all() ? 100 : 20) && !HasFailure(); ++seed) {
    Scene scene(seed);
    SCOPED_TRACE(scene.describe());
    prepare(scene);
    std::vector<Status> ends;
    for (const std::optional<Status>& end : play(scene)) {
      if (end) ends.push_back(*end);
    }
    for (const Status& end : ends) {
      EXPECT_EQ(end.ok(), ends.front().ok());
      EXPECT_TRUE(scene.may_time_out() || end.code() != Code::timeout) << end.to_string();
      EXPECT_TRUE(!scene.has_one_cause() || end.to_string() == ends.front().to_string())
          << end.to_string() << " is not " << ends.front().to_string();
    }
    TearDown();
  }
}

}  // namespace
}  // namespace tutti::test
