#include <algorithm>

#include <c10/util/StringUtil.h>

#include "bindings/torch/backend.h"
#include "bindings/torch/error.h"
#include "bindings/torch/tensors.h"

namespace tutti_torch {
namespace {

using Clock = std::chrono::steady_clock;

// The tags of monitored barriers start here, above c10d's tags, which are ints.
constexpr std::uint64_t barrier_tags = std::uint64_t{1} << 62;
enum : std::uint64_t { arrival = 0, release = 1 };

void check_tag(int tag) { TORCH_CHECK(tag >= 0, "Tag must be nonnegative"); }

// A `Signal` is a byte that a monitored barrier sends or receives. The receive stays pending if the
// byte never arrives. This is harmless, since each barrier has its own tags.
class Signal {
 public:
  Signal(tutti_comm* comm, bool sends, int peer, std::uint64_t tag) : byte_(std::make_shared<char>()) {
    // The operation has no time limit, since a timeout would make the whole group fail. The barrier
    // itself checks the time limit in `wait_until`.
    tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
    options.timeout_ns = INT64_MAX;
    tutti_work* work = nullptr;
    check(sends ? tutti_send(comm, byte_.get(), 1, TUTTI_UINT8, peer, tag, &options, &work)
                : tutti_recv(comm, byte_.get(), 1, TUTTI_UINT8, peer, tag, &options, &work),
          "tutti:monitored_barrier");
    work_.reset(work);
    auto* const keep = new std::shared_ptr<char>(byte_);  // keeps the byte until the operation has ended
    const auto drop = [](void* state, int, const char*, int) {
      delete static_cast<std::shared_ptr<char>*>(state);
    };
    if (tutti_work_then(work, drop, keep) != TUTTI_OK) delete keep;
  }
  // Waits until `end` at the latest. Returns false if the byte has not been sent or received by then. Throws
  // if the group failed or the program was interrupted.
  bool wait_until(Clock::time_point end) const {
    using std::chrono::nanoseconds;
    for (int done = 0;;) {
      const auto left = std::max<nanoseconds>(end - Clock::now(), nanoseconds(0));
      const auto period = std::min(left, interrupt_period);
      check(tutti_work_wait_for(work_.get(), period.count(), &done), "tutti:monitored_barrier");
      if (done != 0 || left == nanoseconds(0)) return done != 0;
      check_interrupt();
    }
  }

 private:
  std::shared_ptr<char> byte_;
  WorkHandle work_;
};

}  // namespace

intrusive_ptr<Work> ProcessGroupTutti::send(Tensors& tensors, int peer, int tag) {
  check_single(tensors, "send");
  check_tag(tag);
  check_contiguous(tensors.front(), "send: input");
  const Elements elements = movable(tensors.front());
  return start({c10d::OpType::SEND, "tutti:send", Milliseconds(0), tensors, tensors},
               [&](const tutti_call_options* call, tutti_work** work) {
                 return tutti_send(comm(), elements.data, elements.count, elements.type, peer, tag, call,
                                   work);
               });
}

intrusive_ptr<Work> ProcessGroupTutti::receive(Tensors& tensors, int peer, int tag, c10d::OpType type,
                                               const char* name) {
  check_single(tensors, "recv");
  check_tag(tag);
  check_contiguous(tensors.front(), "recv: output");
  const Elements elements = movable(tensors.front());
  return start({type, name, Milliseconds(0), tensors, tensors}, [&](const tutti_call_options* call,
                                                                    tutti_work** work) {
    return tutti_recv(comm(), elements.data, elements.count, elements.type, peer, tag, call, work);
  });
}

intrusive_ptr<Work> ProcessGroupTutti::recv(Tensors& tensors, int peer, int tag) {
  return receive(tensors, peer, tag, c10d::OpType::RECV, "tutti:recv");
}

intrusive_ptr<Work> ProcessGroupTutti::recvAnysource(Tensors& tensors, int tag) {
  return receive(tensors, TUTTI_ANY_RANK, tag, c10d::OpType::RECVANYSOURCE, "tutti:recvAnySource");
}

// --- the monitored barrier: rank 0 receives from each rank, then sends to all ---

// The error texts and the order in which ranks are checked are Gloo's, since programs may depend on them.
void ProcessGroupTutti::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  const bool given = options.timeout != c10d::kUnsetTimeout;
  const Milliseconds timeout = given ? limit(options.timeout) : options_->timeout;
  ++monitored_barriers_;
  if (rank_ == 0) {
    lead_monitored_barrier(timeout, wait_all_ranks);
  } else {
    follow_monitored_barrier(timeout);
  }
}

void ProcessGroupTutti::follow_monitored_barrier(Milliseconds timeout) {
  const std::uint64_t tags = barrier_tags + 2 * monitored_barriers_;
  const auto end = Clock::now() + timeout;
  std::string why = "it did not answer in time";
  try {
    const Signal arrived(comm(), true, 0, tags + arrival);
    const Signal released(comm(), false, 0, tags + release);
    if (released.wait_until(end)) return;
  } catch (const c10::Error& error) {
    why = error.what_without_backtrace();
  }
  TORCH_CHECK(
      false, "Rank ", rank_, " successfully reached monitoredBarrier, but received errors while waiting for ",
      "send/recv from rank 0. Please check rank 0 logs for faulty rank.\n Original exception: \n", why);
}

void ProcessGroupTutti::lead_monitored_barrier(Milliseconds timeout, bool wait_all_ranks) {
  const std::uint64_t tags = barrier_tags + 2 * monitored_barriers_;
  const auto end = Clock::now() + timeout;
  std::vector<Signal> arrivals;
  for (int rank = 1; rank < size_; ++rank) arrivals.emplace_back(comm(), false, rank, tags + arrival);
  std::vector<int> missing;
  for (int rank = 1; rank < size_; ++rank) {
    TORCH_CHECK(timeout.count() > 0, "Rank 0 timed out in monitoredBarrier after ", timeout.count(),
                " ms.\nNo ranks successfully processed in monitoredBarrier.");
    std::string why = "it has not arrived";
    try {
      if (arrivals[rank - 1].wait_until(end)) continue;
    } catch (const c10::Error& error) {
      why = error.what_without_backtrace();
    }
    TORCH_CHECK(wait_all_ranks, "[Rank 0]: Rank ", rank, " failed to pass monitoredBarrier in ",
                timeout.count(), " ms\n Original exception: \n", why);
    missing.push_back(rank);
  }
  TORCH_CHECK(missing.empty(), "[Rank 0]: Ranks ", c10::Join(", ", missing),
              " failed to pass monitoredBarrier in ", timeout.count(), " ms");
  for (int rank = 1; rank < size_; ++rank) {
    const Signal told(comm(), true, rank, tags + release);
    TORCH_CHECK(told.wait_until(Clock::now() + timeout), "Rank 0 could not release rank ", rank);
  }
}

}  // namespace tutti_torch
