#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/run/execution.h"
#include "collectives/run/run_binding.h"
#include "collectives/run/schedule_cache.h"
#include "transport/driver/driver.h"
#include "transport/offload/offload.h"

namespace tutti {

// A `Library` is one communicator's use of an offload.
struct Library {
  Offload* offload = nullptr;
  std::string name;  // the name of the offload
  std::string here;  // names this rank and the offload in errors: "rank 3 (host b, pid 4711): nccl"
  int world_rank = 0;
  // Turns `error`, which the offload has returned, into the error that the communicator reports. If `error`
  // names no rank, the result blames this rank. If `error` names a rank, all ranks that report the error use
  // the same words.
  Status blamed(const std::string& what, const Status& error) const;
  std::unique_ptr<OffloadSession> session;
  std::atomic<bool> is_open{false};  // once it is true, `session` does not change
};

// An `OffloadedExecution` lets a library carry out a collective. At the same time it runs a *witness*: a
// barrier whose messages carry the call's fingerprint. The witness shows the ranks whether all of them have
// made the same call. The execution finishes when the library's part and the witness have both ended.
class OffloadedExecution final : public Execution {
 public:
  // --- the thread that issues the call ---

  // Prepares for another call. `witness` holds a run of a barrier. Before the execution starts, the caller
  // must call either `expect` or `refuse`.
  void prepare(Driver& driver, const RunBinding& binding, CachedSchedule::Lease witness);
  // Says that the library will carry out the call. Either `issue` or `withdraw` must follow, before or after
  // `start`.
  void expect(const Library& library);
  // Makes the call end with `why` once all ranks have made it.
  void refuse(const Status& why);
  // Gives the call to the library, whose session must be open. `call.op` must live as long as the operation.
  void issue(const Call& call, void* stream);
  // Ends the library's part with `why`, since no session could be opened.
  void withdraw(const Status& why);
  // Becomes 1 once the witness has ended, successfully or not. `Driver::wait` can wait for it.
  const std::atomic<std::uint32_t>& witness_over() const { return witness_over_; }

  // --- driving ---

  void start(const RunBinding& binding) override;
  // If there is a session, the caller must abort it first.
  void cancel(const Status& why) override;
  std::vector<int> awaited() const override;
  std::string_view awaited_library() const override;
  Result<StreamWait> wait_on(void* stream) override;

 private:
  struct LibraryCall : OffloadCall {
    OffloadedExecution* execution = nullptr;
  };
  struct Task : DriverTask {
    OffloadedExecution* execution = nullptr;
  };

  void library_done(const Status& status);
  void library_ended();
  void judge_library();
  void witness_ended();
  bool is_witness_over() const { return witness_over_.load(std::memory_order_relaxed) != 0; }
  void fail(const Status& why);
  void settle();

  Driver* driver_ = nullptr;
  const RunBinding* binding_ = nullptr;
  const Library* library_ = nullptr;  // null: no library carries out the call
  LibraryCall call_;
  Task task_;              // brings the library's report to the driving thread
  Status library_status_;  // how the library's part has ended
  CachedSchedule::Lease witness_;
  std::atomic<std::uint32_t> witness_over_{0};

  // Only the driving thread uses these members after `prepare` and `refuse`.
  bool witness_runs_ = false;
  bool library_over_ = false;
  bool failed_ = false;
  bool cancelled_ = false;
  Status why_;  // the reason for the cancellation
};

}  // namespace tutti
