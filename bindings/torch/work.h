#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "bindings/torch/fork.h"
#include "bindings/torch/pending_work.h"

namespace tutti_torch {

class Completions;

// A `Flight` holds everything that must be kept until an operation has ended, except its outputs.
struct Flight {
  std::vector<WorkHandle> handles;  // the operation has ended when the works of all handles have ended
  std::vector<at::Tensor> memory;   // other tensors that must live until the operation has ended
  std::function<void()> epilogue;   // copies results to their places; on a device, in the current stream
  // If the operation combines several works, these are its parts. A wait for the operation waits for all
  // parts, and the parts are settled before it. Each part has its own handles.
  std::vector<c10::intrusive_ptr<c10d::Work>> parts = {};
  // The CUDA device of the tensors. It is empty for host memory, and if the operation does not
  // follow a stream.
  std::optional<at::Device> device = {};
};

// A `Label` names and describes an operation.
struct Label {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* name = "";  // for profiles and errors, such as "tutti:all_reduce"
  std::uint64_t sequence = 0;
  std::chrono::milliseconds timeout{0};
  bool profiled = true;
};

// An `OperationWork` is an operation in flight, or several operations that are combined into one.
// Any thread may call its functions. The first thread that notices the end of the operation settles
// it.
//
// For host memory, `wait` makes progress on the caller's thread. For the memory of a CUDA device,
// it makes the caller's current stream wait and returns at once. So another thread must make
// progress (`entrust`). Some results must be copied to their places. The first stream that waits
// makes these copies, or a stream of torch's pool if none has waited by the end of the operation.
class OperationWork : public PendingWork {
 public:
  // The profiler shows `inputs`; `outputs` are the value of `result()` and of the future.
  OperationWork(int rank, const Label& label, const std::vector<at::Tensor>& inputs,
                std::vector<at::Tensor> outputs, Flight flight, std::shared_ptr<Completions> completions);
  // Hands the operation to `Completions` if it is still in flight, or if its results have not been copied to
  // their places yet.
  ~OperationWork() override;

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  // Blocks the calling thread for every kind of memory if a timeout is given.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  // Makes the current stream wait for an operation on a CUDA device. For host memory, this function
  // itself waits.
  void synchronize() override { wait(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  // This function is not marked `override`, since it is virtual only in torch 2.2 and later.
  std::uint64_t getSequencenumber() const { return label_.sequence; }

  void drive() override;
  void settle() override;
  const std::vector<WorkHandle>& handles() const override { return flight_.handles; }
  const std::vector<at::Tensor>& outputs() const { return outputs_; }
  const std::optional<at::Device>& device() const { return flight_.device; }
  // Hands the operation to `Completions`, which makes progress for it, settles it, and holds its tensors
  // until it has ended. Only the first call has an effect.
  void entrust();

 private:
  bool over() const;
  void wait_on_host(std::chrono::milliseconds timeout);
  void follow();
  void copy_results(const c10::Stream& stream);
  bool are_results_there() const;
  std::exception_ptr outcome();
  void make_wait_for_copies(const c10::Stream& stream) const;
  void complete_future();

  const Label label_;
  std::vector<at::Tensor> outputs_;
  Flight flight_;
  std::shared_ptr<Completions> completions_;
  const Birth birth_;
  std::mutex settling_;
  std::atomic<bool> settled_{false};
  std::atomic<bool> entrusted_{false};
  std::optional<c10::Event> copied_;  // occurs when the results have been copied on a CUDA device
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool future_taken_ = false;  // the thread that completes the future has taken it
};

// A thread that waits for an operation calls this every `interrupt_period`. It throws if the program was
// interrupted (Ctrl-C).
extern void (*check_interrupt)();
inline constexpr std::chrono::nanoseconds interrupt_period = std::chrono::milliseconds(200);

}  // namespace tutti_torch
