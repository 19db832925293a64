#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "transport/cuda/device.h"
#include "transport/cuda/word.h"
#include "transport/nccl/api.h"
#include "transport/nccl/group.h"
#include "transport/nccl/lane.h"
#include "transport/nccl/regions.h"
#include "transport/offload/offload.h"

namespace tutti::nccl {

// A `Session` is this rank's end of an NCCL communicator. It has its own stream. It also has a thread that
// ends the communicator, since ending it may block.
class Session final : public OffloadSession, private Lane::User, private Regions::User {
 public:
  // Makes a session that has no NCCL communicator yet. Fails with `resource_exhausted` if the session's
  // thread cannot be started, since without the thread nothing could end the communicator.
  static Result<std::unique_ptr<Session>> create(const Api& api, std::shared_ptr<Lane> lane,
                                                 std::shared_ptr<Regions> regions, int rank, int size);
  ~Session() override;

  // Makes the communicator, and waits until NCCL has connected its ranks. If this fails, only `abort`,
  // `has_ended` and the destructor may be called.
  Status connect(const UniqueId& id, const OffloadPeers& peers);
  // Returns whether NCCL's communicator has ended. Until then, the destructor blocks.
  bool has_ended() const { return ended_; }

  void issue(std::span<OffloadCall* const> calls) override;
  void abort(const Status& why) override;
  Result<StreamWait> wait_on(OffloadCall& call, void* stream) override;
  bool poll() override;
  Deadline next_deadline() const override;
  // The end of a call is a change in memory, which `poll` sees at once.
  bool expects_memory() const override { return open_calls_.load(std::memory_order_relaxed) != 0; }

 private:
  // A `StreamWait` shares the event for which it makes a stream wait.
  using EventPtr = std::shared_ptr<cuda::Event>;
  // An `OwnCall` is a call with copies of its counts.
  struct OwnCall {
    OffloadCall* call;
    std::vector<std::uint64_t> in_counts, out_counts;
  };
  // A `Job` is a group of calls.
  struct Job {
    explicit Job(const Member& member) : group(member) {}
    std::vector<OwnCall> calls;
    // The job begins after these events.
    std::vector<EventPtr> before;
    std::vector<std::unique_ptr<cuda::Event>> before_elsewhere;  // of other contexts, so used only once
    EventPtr over;                                               // recorded behind the job
    std::uint32_t number = 0;  // `word_` has reached this number when the job has ended
    Group group;
  };
  using Jobs = std::list<Job>;

  Session(const Api& api, std::shared_ptr<Lane> lane, std::shared_ptr<Regions> regions, int rank, int size);
  // Asks NCCL repeatedly until its communicator is ready.
  Status wait_ready(const OffloadPeers& peers) const;

  // --- the lane's lock must not be held ---

  // Adds a call to a job, or returns why the call cannot be carried out. Blocks while the call's stream has
  // no room for more work.
  Status add(Job& job, OffloadCall& call);
  // Lets a job begin after the work that is already in a stream of this device. Blocks like `add`.
  Status follow(Job& job, StreamHandle stream);
  // Reports the jobs' calls.
  void report(const Jobs& jobs, const Status& status);

  // --- the lane's lock must be held ---

  bool launch() override;
  Status start(Job& job, bool& launched);
  // Called when NCCL has put the job into the stream. Records the job's event `over` there, and moves the job
  // to `running_`.
  Status finish(Job& job);
  // Judges an error of NCCL. If it is a remote error, returns ok, and keeps the error in `remote_error_`.
  // That error ends the session some time later, and until then nothing more is launched. Any other error is
  // returned, and ends the session now.
  Status judge(Outcome outcome, const Status& error);
  // Returns NCCL's error, if there is one. Sets `ready` to whether NCCL has put everything into the stream.
  Status ask(bool& ready);
  // Asks whether NCCL has put the job in `launching_` into the stream. If so, calls `finish`.
  Status drive_launch();
  // A job may wait although its turn has come, because too many jobs were in the stream at that time.
  // Launches such a job, if the stream has room by now.
  void launch_postponed();
  // Moves jobs that have ended to `ended`.
  Status reap(Jobs& ended);
  // Gives up the session because of an error.
  void fail(const Status& error);
  void close(const Status& why);
  // Registers and deregisters regions. NCCL must be ready.
  void follow_regions();
  Result<EventPtr> take_event();
  // Lets the session use an event again, unless a `StreamWait` still needs it.
  void give_back(EventPtr event);

  // --- other threads ---

  void regions_removed() override;
  void close_when_asked();
  // Waits until NCCL has sent all data that other ranks still need, and then destroys NCCL's communicator.
  // Returns false if this fails or takes too long. The caller must then abort the communicator.
  bool leave_quietly();

  const Api& api_;
  const std::shared_ptr<Lane> lane_;
  const std::shared_ptr<Regions> regions_;
  std::unique_ptr<cuda::Stream> stream_;
  Member member_;                           // constant once `connect` has returned
  std::atomic<std::size_t> open_calls_{0};  // calls that have not been reported

  // The lane's lock guards the following members.
  std::shared_ptr<cuda::Word> word_;  // the number of the last job that has ended
  std::uint32_t last_number_ = 0;     // the number of the last job that was issued
  Jobs waiting_;
  Jobs launching_;  // one at most: NCCL has it, but has not yet put it into the stream
  Jobs running_;    // in the stream
  std::vector<EventPtr> free_events_;
  std::map<std::uint64_t, void*> registered_;  // handles, by the number of the region
  std::uint64_t regions_version_ = 0;          // the version of `regions_` when they were registered
  Status remote_error_;                        // NCCL's remote error; ok if there was none
  Deadline remote_error_counts_ = Deadline::never();
  bool closes_ = false;
  Status why_;  // the error for which the session is given up; ok if it ends because nobody needs it any more
  std::condition_variable closing_;
  std::atomic<bool> ended_{false};
  std::thread closer_;
};

}  // namespace tutti::nccl
