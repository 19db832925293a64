#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "bindings/torch/fork.h"
#include "bindings/torch/pending_work.h"

namespace tutti_torch {

class Completions;

// A `Flight` holds everything that must be kept until an operation has ended, except its outputs.
struct Flight {
  std::vector<WorkHandle> handles;  // the operation has ended when all of these have
  std::vector<at::Tensor> memory;   // other tensors that must live until then
  std::function<void()> epilogue;   // called after success: copies results to their places
  // These works are combined into this work. A wait for this work waits for all of its parts. When this work
  // is settled, its parts are settled first. Each part has handles of its own.
  std::vector<c10::intrusive_ptr<c10d::Work>> parts = {};
};

// A `Label` names and describes an operation.
struct Label {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* name = "";  // for profiles and errors, such as "tutti:all_reduce"
  std::uint64_t sequence = 0;
  std::chrono::milliseconds timeout{0};
  bool profiled = true;
};

// An `OperationWork` is an operation in flight, or several that are waited for as one. `wait` makes progress
// on the caller's thread. The first thread to notice that the operation has ended settles it. Any thread may
// call these functions.
class OperationWork : public PendingWork {
 public:
  // The profiler shows `inputs`; `outputs` are the value of `result()` and of the future.
  OperationWork(int rank, const Label& label, const std::vector<at::Tensor>& inputs,
                std::vector<at::Tensor> outputs, Flight flight, std::shared_ptr<Completions> completions);
  // If the operation is still in flight, hands it to `Completions`: its memory must live until it has ended.
  ~OperationWork() override;

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  // This function is virtual since torch 2.2.
  std::uint64_t getSequencenumber() const { return label_.sequence; }

  void drive() override;
  void settle() override;
  const std::vector<WorkHandle>& handles() const override { return flight_.handles; }
  const std::vector<at::Tensor>& outputs() const { return outputs_; }

 private:
  bool over() const;
  std::exception_ptr outcome();
  void complete_future();

  const Label label_;
  std::vector<at::Tensor> outputs_;
  Flight flight_;
  std::shared_ptr<Completions> completions_;
  const Birth birth_;
  std::mutex settling_;
  std::atomic<bool> settled_{false};
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// A waiting thread calls this every `interrupt_period`. It throws if the program was interrupted (Ctrl-C).
extern void (*check_interrupt)();
inline constexpr std::chrono::nanoseconds interrupt_period = std::chrono::milliseconds(200);

}  // namespace tutti_torch
