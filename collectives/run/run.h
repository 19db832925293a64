#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/run/buffers.h"
#include "collectives/run/execution.h"
#include "collectives/run/run_binding.h"
#include "collectives/run/scratch.h"
#include "collectives/schedule/schedule.h"
#include "core/reduce.h"
#include "transport/mesh/mesh.h"

namespace tutti {

// A `Run` executes one schedule of messages, any number of times, one after the other. Because it is reused,
// repeated collectives allocate nothing. Only the driving thread calls it.
class Run final : public Execution {
 public:
  explicit Run(const Schedule& schedule);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void start(const RunBinding& binding) override;
  void cancel(const Status& why) override;
  std::vector<int> awaited() const override;
  std::size_t scratch_bytes() const { return scratch_.bytes(); }

 private:
  struct SendNode : SendOp {
    Run* run = nullptr;
    std::uint32_t step = 0;
    bool posted = false;
  };
  struct RecvNode : RecvOp {
    Run* run = nullptr;
    std::uint32_t step = 0;
    bool posted = false;
  };
  struct StepState {
    std::uint32_t waiting_for = 0;  // dependencies that are still open
    std::uint32_t node = 0;         // index among the nodes of its kind, if the step is a message
  };

  std::byte* address(const Slice& slice) const {
    return buffers_.at(slice.buffer, slice.offset * element_size_);
  }
  void drain();
  void execute(std::uint32_t step);
  void post_send(const Step& step, std::uint32_t index);
  void post_recv(const Step& step, std::uint32_t index);
  void complete(std::uint32_t step);
  void fail(const Status& why);
  void message_done(std::uint32_t step, const Status& status);
  void report_failure();
  void settle();

  const Schedule& schedule_;
  RunBinding binding_;
  std::vector<StepState> states_;
  std::vector<SendNode> sends_;
  std::vector<RecvNode> recvs_;
  std::vector<std::uint32_t> ready_;  // each step is pushed once, so this need not be a ring buffer
  std::size_t next_ready_ = 0;
  std::size_t completed_ = 0;
  bool draining_ = false;
  bool failed_ = false;
  bool cancelled_ = false;
  std::size_t posted_ = 0;  // messages that have not ended; not counted before the run is cancelled
  Status why_;              // the failure, or the reason for the cancellation
  Scratch scratch_;
  Buffers buffers_;
  std::size_t element_size_ = 1;
};

}  // namespace tutti
