#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/ScopeExit.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tutti/c.h>

#include "bindings/torch/completions.h"
#include "bindings/torch/error.h"
#include "bindings/torch/fork.h"
#include "bindings/torch/limit.h"
#include "bindings/torch/streams.h"
#include "bindings/torch/tensors.h"
#include "bindings/torch/version.h"
#include "bindings/torch/work.h"
#include "bindings/torch/world.h"

namespace tutti_torch {

using c10::intrusive_ptr;
using c10d::Work;
using Tensors = std::vector<at::Tensor>;
using Works = std::vector<intrusive_ptr<Work>>;
using Milliseconds = std::chrono::milliseconds;

// `ProcessGroupTutti` is the backend "tutti" of a process group: it runs torch.distributed's operations on
// one communicator.
//
// An operation on host memory starts on the caller's thread, and `wait` makes progress on the
// waiting thread. Neither needs another thread. An operation on the memory of a CUDA device follows
// the current stream. `wait` makes the current stream wait, and `Completions` makes progress. A
// failed operation fails the group, as in the library: every pending and later operation ends with
// the first error. Threads that issue operations on one group must use the same order on all ranks,
// as c10d requires. Any thread may call `abort`, `shutdown` and `getError`.
//
// Some virtual functions of later versions are missing in torch 2.1. Functions that override one of
// these are not marked `override`, so that the class also compiles with torch 2.1.
class ProcessGroupTutti : public c10d::Backend {
 public:
  // Blocks until all `size` ranks have arrived. The group is made from the ranks of `from`'s world
  // if that world exists and has not failed. Otherwise the ranks meet in the store. The caller must
  // not hold the GIL.
  ProcessGroupTutti(const intrusive_ptr<c10d::Store>& store, int rank, int size, Milliseconds timeout,
                    Place from = {});
  ~ProcessGroupTutti() override;

  // Makes this group's world the default: later groups are made in this world.
  void serve_as_default() { World::serve_as_default(place_.world); }

  // Calls `end` for all groups of this process. The process calls this at its end, so that other
  // ranks do not count it as lost.
  static void end_all();
  // Drops all groups in a forked child, since they belong to its parent.
  static void forget_all();

  const std::string getBackendName() const override { return "tutti"; }
  bool supportsSplitting() const { return true; }
  bool supportsCoalescing() const { return true; }
  intrusive_ptr<Options> getBackendOptions() { return options_; }
  void setTimeout(Milliseconds timeout) { options_->timeout = limit(timeout); }

  // These are in backend.cc.
  intrusive_ptr<c10d::Backend> split(const intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                     const intrusive_ptr<Options>& options);
  intrusive_ptr<c10d::Backend> merge(const intrusive_ptr<c10d::Store>& store,
                                     const intrusive_ptr<Options>& options, const int& rank, const int& size);
  void abort();
  // Waits for the current stream of the device that the group has used, since this stream may
  // depend on operations. Then calls `end`.
  void shutdown();
  // Ends the operations in flight. The last group of a world also says goodbye to the other ranks,
  // so that they do not count this rank as lost.
  void end();
#if TUTTI_TORCH_AT_LEAST(2, 7)
  c10d::ErrorType getError() override;
#endif
  void startCoalescing() override;
  intrusive_ptr<Work> endCoalescing() override;
  // Does nothing: every rank counts from zero, so the ranks need not agree on a first number.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }

  // These are in reductions.cc.
  intrusive_ptr<Work> allreduce(Tensors& tensors, const c10d::AllreduceOptions& options = {}) override;
  intrusive_ptr<Work> allreduce_coalesced(Tensors& tensors,
                                          const c10d::AllreduceCoalescedOptions& options = {}) override;
  intrusive_ptr<Work> reduce(Tensors& tensors, const c10d::ReduceOptions& options = {}) override;
  intrusive_ptr<Work> reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                     const c10d::ReduceScatterOptions& options = {}) override;
  intrusive_ptr<Work> _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                           const c10d::ReduceScatterOptions& options = {}) override;
  intrusive_ptr<Work> reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options = {}) override;

  // This is in sparse.cc.
  intrusive_ptr<Work> allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options = {}) override;

  // These are in moves.cc.
  intrusive_ptr<Work> broadcast(Tensors& tensors, const c10d::BroadcastOptions& options = {}) override;
  intrusive_ptr<Work> allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                const c10d::AllgatherOptions& options = {}) override;
  intrusive_ptr<Work> _allgather_base(at::Tensor& output, at::Tensor& input,
                                      const c10d::AllgatherOptions& options = {}) override;
  intrusive_ptr<Work> allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options = {}) override;
  intrusive_ptr<Work> allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions& options = {}) override;
  intrusive_ptr<Work> gather(std::vector<Tensors>& outputs, Tensors& inputs,
                             const c10d::GatherOptions& options = {}) override;
  intrusive_ptr<Work> scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                              const c10d::ScatterOptions& options = {}) override;
  intrusive_ptr<Work> alltoall_base(at::Tensor& output, at::Tensor& input,
                                    std::vector<std::int64_t>& output_splits,
                                    std::vector<std::int64_t>& input_splits,
                                    const c10d::AllToAllOptions& options = {}) override;
  intrusive_ptr<Work> alltoall(Tensors& outputs, Tensors& inputs,
                               const c10d::AllToAllOptions& options = {}) override;
  intrusive_ptr<Work> barrier(const c10d::BarrierOptions& options = {}) override;

  // These are in point_to_point.cc.
  intrusive_ptr<Work> send(Tensors& tensors, int peer, int tag) override;
  intrusive_ptr<Work> recv(Tensors& tensors, int peer, int tag) override;
  intrusive_ptr<Work> recvAnysource(Tensors& tensors, int tag) override;
  void monitoredBarrier(const c10d::BarrierOptions& options = {}, bool wait_all_ranks = false) override;

 private:
  // A `Plan` is an operation that is about to be issued.
  struct Plan {
    c10d::OpType type;
    const char* name;      // such as "tutti:all_reduce"
    Milliseconds timeout;  // the call's limit; zero or kUnsetTimeout means the group's
    Tensors inputs;        // shown by the profiler
    Tensors outputs;       // value of `result()`
    Tensors memory = {};   // other tensors that must live until the operation has ended
    std::function<void()> epilogue = {};
  };
  // Issues an operation. `issue` has the type int(const tutti_call_options*, tutti_work**) and
  // calls the library once.
  template <class Issue>
  intrusive_ptr<Work> start(Plan plan, const Issue& issue);
  // Returns a call's time limit.
  Milliseconds limit_of(Milliseconds given) const {
    return given.count() == 0 || given == c10d::kUnsetTimeout ? options_->timeout : limit(given);
  }
  // Combines works into one work. The profiler shows the combined work under `name` if `profiled`
  // is true. Pass false if the profiler has already shown the parts.
  intrusive_ptr<Work> together(const Works& works, c10d::OpType type, const char* name, const Tensors& inputs,
                               bool profiled);
  // Issues several parts as one work. It calls `issue_part(i)` once for each of `inputs`.
  template <class IssuePart>
  intrusive_ptr<Work> start_together(c10d::OpType type, const char* name, const Tensors& inputs,
                                     const IssuePart& issue_part);
  // A `Borrowed` is the communicator for one call of the library. `shutdown` on another thread
  // waits while a `Borrowed` exists.
  class Borrowed {
   public:
    Borrowed(tutti_comm* comm, std::shared_lock<std::shared_mutex> lock)
        : comm_(comm), lock_(std::move(lock)) {}
    operator tutti_comm*() const { return comm_; }

   private:
    tutti_comm* comm_;
    std::shared_lock<std::shared_mutex> lock_;
  };
  // Blocks until the current stream of a device has done its work. The default is the device that
  // the group has used. Returns at once if the group has used none.
  void wait_for_stream(std::optional<at::Device> device = {}) const;
  // Makes the communicator. The ranks meet in the store, unless `from` has a world and this world has not
  // failed.
  tutti_comm* make_comm(const intrusive_ptr<c10d::Store>& store, Place from);
  // Returns the communicator, or null after `shutdown`.
  Borrowed borrow() const;
  // Returns the communicator. Throws after `shutdown`.
  Borrowed comm() const;
  intrusive_ptr<Work> receive(Tensors& tensors, int peer, int tag, c10d::OpType type, const char* name);
  void lead_monitored_barrier(Milliseconds timeout, bool wait_all_ranks);
  void follow_monitored_barrier(Milliseconds timeout);

  const Birth birth_;
  mutable std::shared_mutex comm_mutex_;
  tutti_comm* comm_ = nullptr;  // null after `shutdown`
  Place place_;                 // the world is null after `shutdown`
  std::shared_ptr<Completions> completions_;
  const intrusive_ptr<Options> options_;
  std::uint64_t sequence_ = 0;
  std::uint64_t monitored_barriers_ = 0;
  bool coalescing_ = false;  // true between `startCoalescing` and `endCoalescing`
  Works coalesced_;
  bool in_parts_ = false;                    // whether operations are issued as parts of one work
  std::atomic<at::DeviceIndex> device_{-1};  // the CUDA device that operations of this group have used
};

// The destructor, which may run on any thread, calls this function to end the group.
// module.cc sets it to a function that releases the GIL.
extern void (*before_destruction)(ProcessGroupTutti*);

template <class Issue>
intrusive_ptr<Work> ProcessGroupTutti::start(Plan plan, const Issue& issue) {
  Label label;
  label.type = plan.type;
  label.name = plan.name;
  label.sequence = ++sequence_;
  label.timeout = limit_of(plan.timeout);
  label.profiled = !in_parts_;
  tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
  options.timeout_ns = std::chrono::nanoseconds(label.timeout).count();
  const at::Device device = device_of({&plan.inputs, &plan.outputs, &plan.memory}, plan.name);
  options.memory = device.is_cuda() ? TUTTI_CUDA : TUTTI_HOST;
  options.device = device.has_index() ? device.index() : 0;
  const std::optional<c10::Stream> stream = current_stream(device);
  if (stream) {
    options.stream = handle_of(*stream);
    // The operation will fail if the group has failed, but perhaps only after `wait` has returned.
    // So the error is thrown now.
    const int status = tutti_comm_status(comm());
    if (status != TUTTI_OK) std::rethrow_exception(last_error(status, plan.name, label.timeout));
  }
  tutti_work* work = nullptr;
  check(issue(&options, &work), plan.name);
  Flight flight;
  flight.handles.emplace_back(work);
  flight.memory = std::move(plan.memory);
  flight.epilogue = std::move(plan.epilogue);
  if (stream) {
    flight.device = device;
    device_ = device.index();
    // The current stream may still be copying an input that was allocated in another stream.
    flight.memory.insert(flight.memory.end(), plan.inputs.begin(), plan.inputs.end());
  }
  auto started = c10::make_intrusive<OperationWork>(rank_, label, plan.inputs, std::move(plan.outputs),
                                                    std::move(flight), completions_);
  if (stream) started->entrust();  // perhaps the host never waits for the operation
  if (coalescing_ && !in_parts_) coalesced_.push_back(started);
  return started;
}

template <class IssuePart>
intrusive_ptr<Work> ProcessGroupTutti::start_together(c10d::OpType type, const char* name,
                                                      const Tensors& inputs, const IssuePart& issue_part) {
  Works works;
  in_parts_ = true;
  const auto end = c10::make_scope_exit([&] { in_parts_ = false; });
  for (std::size_t i = 0; i < inputs.size(); ++i) works.push_back(issue_part(i));
  auto all = together(works, type, name, inputs, true);
  if (coalescing_) coalesced_.push_back(all);
  return all;
}

}  // namespace tutti_torch
