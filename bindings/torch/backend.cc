#include "bindings/torch/backend.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>

#include "bindings/torch/error.h"
#include "bindings/torch/store.h"

namespace tutti_torch {
namespace {

// The callbacks of futures have this long to return when the program ends. The limit is needed,
// since a callback may block for ever.
constexpr std::chrono::seconds longest_callback{10};

// `Living` holds all groups of this process that exist. It is never destroyed, since groups may outlive
// static objects.
struct Living {
  std::mutex mutex;
  std::set<ProcessGroupTutti*> groups;
};

Living*& all_living() {
  static auto* all = new Living;
  return all;
}

Living& living() { return *all_living(); }

}  // namespace

void (*before_destruction)(ProcessGroupTutti*) = [](ProcessGroupTutti* backend) { backend->end(); };

ProcessGroupTutti::ProcessGroupTutti(const intrusive_ptr<c10d::Store>& store, int rank, int size,
                                     Milliseconds timeout, Place from)
    : Backend(rank, size), options_(c10::make_intrusive<Options>("tutti", limit(timeout))) {
  comm_ = make_comm(store, std::move(from));
  completions_ = place_.world->completions();
  init();
  const std::lock_guard lock(living().mutex);
  living().groups.insert(this);
}

ProcessGroupTutti::~ProcessGroupTutti() {
  if (birth_.forked_since()) return;
  {
    const std::lock_guard lock(living().mutex);
    living().groups.erase(this);
  }
  before_destruction(this);
}

tutti_comm* ProcessGroupTutti::make_comm(const intrusive_ptr<c10d::Store>& store, Place from) {
  tutti_comm* const made =
      from.world == nullptr ? nullptr : from.world->make_group(from.ranks, options_->timeout);
  if (made != nullptr) {
    place_ = std::move(from);
    return made;
  }
  place_.world = std::make_shared<World>(meet(store, rank_, size_, options_->timeout));
  place_.ranks.resize(static_cast<std::size_t>(size_));
  std::iota(place_.ranks.begin(), place_.ranks.end(), 0);
  tutti_comm* const first = place_.world->make_group(place_.ranks, options_->timeout);
  TORCH_CHECK_WITH(DistBackendError, first != nullptr, "tutti: a rank was lost while the group was made");
  return first;
}

void ProcessGroupTutti::forget_all() {
  all_living() = new Living;
  Completions::forget_all();
  World::forget_default();
}

void ProcessGroupTutti::end_all() {
  {
    const std::lock_guard lock(living().mutex);
    for (ProcessGroupTutti* group : living().groups) group->end();
  }
  Completions::wait_for_all(longest_callback);
}

ProcessGroupTutti::Borrowed ProcessGroupTutti::borrow() const {
  birth_.check();
  std::shared_lock lock(comm_mutex_);
  return {comm_, std::move(lock)};
}

ProcessGroupTutti::Borrowed ProcessGroupTutti::comm() const {
  Borrowed comm = borrow();
  TORCH_CHECK(comm != nullptr, "tutti: the process group has been shut down");
  return comm;
}

void ProcessGroupTutti::wait_for_stream(std::optional<at::Device> device) const {
  const at::DeviceIndex used = device_;
  if (!device && used >= 0) device = at::Device(at::kCUDA, used);
  const std::optional<c10::Stream> stream = device ? current_stream(*device) : std::nullopt;
  if (stream) stream->synchronize();
}

void ProcessGroupTutti::shutdown() {
  if (birth_.forked_since()) return;
  wait_for_stream();
  end();
}

void ProcessGroupTutti::end() {
  if (birth_.forked_since()) return;
  tutti_comm* ended = nullptr;
  std::shared_ptr<World> world;  // destroyed last
  {
    const std::lock_guard lock(comm_mutex_);
    std::swap(ended, comm_);
    std::swap(world, place_.world);
  }
  tutti_comm_free(ended);
}

void ProcessGroupTutti::abort() {
  if (const Borrowed comm = borrow()) check(tutti_comm_abort(comm, "abort() was called"), "tutti:abort");
}

#if TUTTI_TORCH_AT_LEAST(2, 7)
c10d::ErrorType ProcessGroupTutti::getError() {
  switch (tutti_comm_status(comm())) {
    case TUTTI_OK:
      return c10d::ErrorType::SUCCESS;
    case TUTTI_ERROR_TIMEOUT:
      return c10d::ErrorType::TIMEOUT;
    case TUTTI_ERROR_PEER_LOST:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}
#endif

// Only the members of the new group call this, so it must not use a collective of the whole group.
intrusive_ptr<c10d::Backend> ProcessGroupTutti::split(const intrusive_ptr<c10d::Store>& store,
                                                      const std::vector<int>& ranks,
                                                      const intrusive_ptr<Options>& options) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank_);
  if (found == ranks.end()) return nullptr;
  Place from;
  {
    const std::shared_lock lock(comm_mutex_);
    from.world = place_.world;
  }
  for (const int rank : ranks) from.ranks.push_back(place_.ranks.at(static_cast<std::size_t>(rank)));
  return c10::make_intrusive<ProcessGroupTutti>(
      store, static_cast<int>(found - ranks.begin()), static_cast<int>(ranks.size()),
      options ? options->timeout : options_->timeout, std::move(from));
}

intrusive_ptr<c10d::Backend> ProcessGroupTutti::merge(const intrusive_ptr<c10d::Store>& store,
                                                      const intrusive_ptr<Options>& options, const int& rank,
                                                      const int& size) {
  return c10::make_intrusive<ProcessGroupTutti>(store, rank, size,
                                                options ? options->timeout : options_->timeout);
}

// --- coalescing: the operations start immediately; only their works are combined ---

// torch does not end the coalescing if an exception leaves a coalescing block. So works of an
// earlier block may remain.
void ProcessGroupTutti::startCoalescing() {
  coalesced_.clear();
  coalescing_ = true;
}

intrusive_ptr<Work> ProcessGroupTutti::endCoalescing() {
  TORCH_CHECK(coalescing_, "tutti: coalescing has not begun");
  coalescing_ = false;
  return together(std::exchange(coalesced_, {}), c10d::OpType::COALESCED, "tutti:coalesced", {}, false);
}

intrusive_ptr<Work> ProcessGroupTutti::together(const Works& works, c10d::OpType type, const char* name,
                                                const Tensors& inputs, bool profiled) {
  Flight flight;
  Tensors outputs;
  for (const intrusive_ptr<Work>& each : works) {
    auto& work = static_cast<OperationWork&>(*each);
    for (const WorkHandle& handle : work.handles())
      flight.handles.emplace_back(tutti_work_copy(handle.get()));
    outputs.insert(outputs.end(), work.outputs().begin(), work.outputs().end());
    if (work.device()) flight.device = work.device();
  }
  flight.parts = works;
  Label label;
  label.type = type;
  label.name = name;
  label.sequence = sequence_;
  label.timeout = options_->timeout;
  label.profiled = profiled;
  return c10::make_intrusive<OperationWork>(rank_, label, inputs, std::move(outputs), std::move(flight),
                                            completions_);
}

}  // namespace tutti_torch
