#include "collectives/group/offloaded_collectives.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "collectives/arguments.h"

namespace tutti {

// `Peers` shows a library the members for which it opens a session.
class OffloadedCollectives::Peers final : public OffloadPeers {
 public:
  Peers(OffloadedCollectives& owner, Memory memory, Deadline deadline)
      : owner_(owner), memory_(memory), deadline_(deadline) {}

  int rank() const override { return owner_.parts_.members.rank(); }
  std::span<const PeerInfo* const> members() const override { return owner_.offloading_.peers(); }
  Memory memory() const override { return memory_; }
  Result<std::vector<std::byte>> exchange(std::span<const std::byte> mine) override;
  Result<std::unique_ptr<HostCalls>> host_calls() override {
    return owner_.offloading_.host_calls(deadline_);
  }
  Status status() const override { return owner_.parts_.failure.status(); }
  Deadline deadline() const override { return deadline_; }

 private:
  OffloadedCollectives& owner_;
  const Memory memory_;
  const Deadline deadline_;
};

Result<std::vector<std::byte>> OffloadedCollectives::Peers::exchange(std::span<const std::byte> mine) {
  std::vector<std::byte> all(mine.size() * members().size());
  const Call call{.kind = CollectiveKind::all_gather,
                  .part_of = Composite::offload,
                  .in = ConstBuffer(mine.data(), mine.size(), DataType::uint8),
                  .out = Buffer(all.data(), all.size(), DataType::uint8)};
  // A timeout of zero would mean the default, so the timeout is at least 1 ns.
  const std::chrono::nanoseconds remaining = std::max(deadline_.remaining(), std::chrono::nanoseconds(1));
  try {
    owner_.ordinary_(call, {.timeout = remaining}).wait();
  } catch (const Error& error) {
    return error.status();
  }
  return all;
}

// Each call has a witness: a barrier under the call's sequence number. The witness consists of messages even
// where the ranks share memory. The mesh compares each of these messages with the call that this rank has
// made under that number, even if a library carries out the call. So any mismatch is found.
Result<Operation*> OffloadedCollectives::make(const Call& call, const Fingerprint& print,
                                              const CallOptions& options) {
  Problem barrier;
  barrier.rank = parts_.members.rank();
  barrier.size = parts_.members.size();
  barrier.topology = &parts_.members.topology();
  const std::uint64_t number = parts_.journal.number_collective();
  const Result<std::shared_ptr<CachedSchedule>> schedule = cache_.get(barrier, 0);
  if (!schedule.ok()) return schedule.status();
  Operation& operation = *parts_.live.make(owner_, Operation::Kind::collective, print, options);
  operation.sequence = number;
  operation.algorithm = 0;
  operation.bind(call, parts_.context, parts_.mesh, parts_.members.world_ranks());
  if (operation.offloaded == nullptr) operation.offloaded = std::make_unique<OffloadedExecution>();
  operation.execution = operation.offloaded.get();
  operation.offloaded->prepare(parts_.mesh.driver(), operation.binding, (*schedule)->lease());
  return &operation;
}

Work OffloadedCollectives::refuse_together(const Call& call, const Fingerprint& print,
                                           const CallOptions& options, const Status& why) {
  const Result<Operation*> made = make(call, print, options);
  if (!made.ok()) return parts_.live.refuse(print, made.status());
  (*made)->offloaded->refuse(why);
  return parts_.gate.launch(**made);
}

// The operation counts as executing even before it is launched, because the library already has the
// call. The operation must not end before the library has reported the end of the call.
Work OffloadedCollectives::issue(const Call& call, const Fingerprint& print, const CallOptions& options,
                                 Library& library) {
  if (options.stream != nullptr) {
    const Status follows =
        library.offload->can_follow(options.stream, memory_of(call, parts_.members.rank()));
    if (!follows.ok()) return parts_.live.refuse(print, follows);
  }
  if (!library.is_open.load(std::memory_order_acquire)) return issue_first(call, print, options, library);
  const Result<Operation*> made = make(call, print, options);
  if (!made.ok()) return parts_.live.refuse(print, made.status());
  Operation& operation = **made;
  operation.executing = true;
  operation.offloaded->expect(library);
  operation.offloaded->issue(operation.own_call(call), options.stream);
  Work work = parts_.gate.launch(operation);
  parts_.mesh.driver().wake();  // so that the session is polled even if no caller waits
  return work;
}

// First, the witness runs alone. When it has ended, all ranks are known to make this same call, so they can
// open the session together.
Work OffloadedCollectives::issue_first(const Call& call, const Fingerprint& print, const CallOptions& options,
                                       Library& library) {
  Driver& driver = parts_.mesh.driver();
  if (driver.driven_by_this_thread()) {
    return parts_.live.refuse(
        print, Status(Code::invalid_argument,
                      "the communicator's first call that " + library.name +
                          " carries out blocks, so it cannot be made inside a `then` callback"));
  }
  const std::unique_lock lock(opening_);
  if (library.is_open.load(std::memory_order_acquire)) return issue(call, print, options, library);
  const Result<Operation*> made = make(call, print, options);
  if (!made.ok()) return parts_.live.refuse(print, made.status());
  Operation& operation = **made;
  const Deadline deadline = Deadline::after(operation.timeout);
  const Memory memory = memory_of(call, parts_.members.rank());
  OffloadedExecution& execution = *operation.offloaded;
  operation.executing = true;
  execution.expect(library);
  Work work = parts_.gate.launch(operation);
  const Status opened = driver.wait(execution.witness_over(), Deadline::never())
                            ? open(library, memory, deadline)
                            : driver.status();
  if (opened.ok()) {
    execution.issue(operation.own_call(call), options.stream);
  } else {
    execution.withdraw(opened);
  }
  driver.wake();
  return work;
}

// If the session cannot be opened, the communicator fails with the first cause on all ranks.
Status OffloadedCollectives::open(Library& library, Memory memory, Deadline deadline) {
  if (const Status failed = parts_.failure.status(); !failed.ok()) return failed;
  Peers peers(*this, memory, deadline);
  const Status opened = offloading_.open(library, peers);
  if (opened.ok()) return opened;
  const Status why = library.blamed(" cannot be opened: ", opened);
  parts_.gate.abort(why);
  return why;
}

}  // namespace tutti
